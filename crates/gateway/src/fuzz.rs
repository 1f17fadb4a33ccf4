//! The body of the fuzz target `gateway_toml`: the file of a gateway, and the words that a running one is asked.

use crate::config::Config;
use crate::rules::{self, Ports};

/// Whatever a file says, it is refused in one line that names the file, or it is a configuration of which rules can be made:
/// lines about the gateway's own table, and no others.
///
/// # Panics
/// If not.
pub fn gateway_toml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Config::parse("gateway.toml", &text) {
        Err(e) => {
            let said = e.to_string();
            assert!(said.starts_with("gateway.toml: ") && said.lines().count() == 1, "{said:?}");
        }
        Ok(config) => {
            let own = format!(" inet {}", rules::table(&config));
            let rules = rules::all(&config, Ports { v4: 1, v6: 2 }, true) + &rules::closed(&config);
            assert!(rules.lines().all(|line| line.contains(&own)), "{rules}");
            assert_eq!(config.needs_restart(&config), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Rng;

    const WHOLE: &str = r#"
name = "a-1"
on-failure = "block"
[terrestrial]
interface = "lan0"
networks = ["10.0.0.0/8", "fd00::/8"]
preserve = "address"
[satellite]
interface = "sat0"
networks = ["192.0.2.0/24"]
rate = "10 Mbit/s"
mtu = 1400
cc = { name = "scps-like", window = 1000.0 }
endpoint = { mss = "1300 B", keepalive-idle = "10 s" }
rwnd = "8 MiB"
sndbuf = "8 MiB"
profile = "compact"
[[forward]]
listen = "127.0.0.1:8080"
to = "203.0.113.7:80"
[[publish]]
port = 443
to = "[::1]:8443"
[split]
ports = [80, 443]
exclude-ports = [179]
exclude = ["192.0.2.9"]
[limits]
flows = 100
buffer = "64 KiB"
memory = "16 MiB"
idle = "100 s"
stuck = "50 s"
drain = "1 s"
[log]
flows = "/var/log/skyhaul/flows.jsonl"
events = "stderr"
level = "warning"
"#;

    /// The file, with bytes and lines changed, repeated and left out.
    #[test]
    fn whatever_a_file_says_is_taken_or_refused_in_one_line() {
        Config::parse("gateway.toml", WHOLE).expect("is good");
        let mut rng = Rng::stream(1, "mutations");
        for _ in 0..5000 {
            let mut lines: Vec<Vec<u8>> = WHOLE.lines().map(|l| l.as_bytes().to_vec()).collect();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(lines.len() as u64) as usize;
                match rng.below(5) {
                    0 => drop(lines.remove(at)),
                    1 => lines.push(lines[at].clone()),
                    2 => lines.swap(at, 0),
                    _ => {
                        let line = &mut lines[at];
                        let place = rng.below(line.len() as u64 + 1) as usize;
                        let byte = b"\"[]{}=,.-/0189aek \\#\0\x1b\xff"[rng.below(23) as usize];
                        if rng.below(2) == 0 || place == line.len() {
                            line.insert(place, byte);
                        } else {
                            line[place] = byte;
                        }
                    }
                }
            }
            gateway_toml(&lines.join(&b'\n'));
        }
    }
}
