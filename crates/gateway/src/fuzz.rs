//! The bodies of the fuzz targets `gateway_toml`, for the file of a gateway, `gateway_packets`, for packets that it observes and
//! messages of other gateways, and `repair_packets`, for an attacker between two gateways that repair datagrams.

use crate::config::Config;
use crate::rules::{self, Ports};
use crate::{evidence, priority, repair};

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

/// Whatever packets pass an interface and whatever arrives at the port of the priority test, counts are possible ones: no share
/// exceeds its whole, and tables keep their limits.
///
/// # Panics
/// If not.
pub fn gateway_packets(data: &[u8]) {
    let file = "[terrestrial]\ninterface = \"a\"\n[satellite]\ninterface = \"b\"\n[evidence]\nmode = \"ab\"\nconnections = 8\nprefixes = 4\n";
    let Ok(config) = Config::parse("gateway.toml", file) else { return };
    let seen = evidence::observe_bytes(data, &config);
    assert!(seen.open <= 8 && seen.prefixes <= 4 && seen.groups.len() <= 5);
    for c in seen.groups.iter().flat_map(|g| &g.comparisons) {
        let [low, high] = c.pointwise;
        assert!(low <= c.ratio && c.ratio <= high, "{c:?}");
    }
    priority::read_bytes(data);
}

/// Whatever an attacker does between two gateways that repair datagrams, no datagram arrives that was not sent, and none twice.
///
/// # Panics
/// If one does.
pub fn repair_packets(data: &[u8]) {
    repair::packets(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Rng;

    const WHOLE: &str = r#"
name = "a-${n}"
on-failure = "block"
[variables]
n = 1
nets = ["10.0.0.0/8", "fd00::/8"]
size = "${n} MB"
[terrestrial]
interface = "lan0"
networks = "${nets}"
[satellite]
interface = "sat0"
networks = ["192.0.2.0/24"]
rate = "10 Mbit/s"
mtu = 1400
cc = { name = "scps-like", window = 1000.0 }
fallback-cc = "hybla"
endpoint = { mss = "1300 B", keepalive-idle = "10 s" }
rwnd = "8 MiB"
sndbuf = "8 MiB"
profile = "geo"
rtt = "550 ms"
probe-mark = "compact"
[[forward]]
listen = "127.0.0.1:8080"
to = "203.0.113.7:80"
[[publish]]
port = 443
to = "[::1]:8443"
[[class]]
name = "small"
ports = [22, "5000-5010"]
dscp = ["EF", 40]
weight = 4
[[class]]
name = "web"
ports = [80]
[[subscriber]]
networks = ["10.1.0.0/16"]
prefix-v4 = 24
rate = "2 Mbit/s"
[metrics]
listen = "127.0.0.1:9101"
prefix-v4 = 16
prefixes = 10
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
rotate = "${size}"
keep = 3
[evidence]
mode = "ab"
fraction = 0.3
by = "client"
seed = 5
group = "client"
prefix-v4 = 16
prefix-v6 = 32
connections = 100
prefixes = 10
[evidence.other]
cc = "hybla"
rwnd = "1 MiB"
[priority-test]
test = true
peers = ["192.0.2.1", "fd00::1"]
port = 4000
interval = "60 s"
packets = 400
[repair]
peer = "192.0.2.1:4001"
port = 4002
key = "0123456789abcdef0123456789abcdef"
rate = "5 Mbit/s"
queue = "drop-tail"
limit = "300 ms"
fec = true
retries = 1
resequence = "500 ms"
share = 0.1
block = 50
fill-time = "50 ms"
residual = 1e-4
low-priority = true
report = "10 ms"
compress = false
bundle = false
[repair.pass]
networks = ["10.3.0.0/16", "fd01::/16"]
ports = [53, "5000-5010"]
"#;

    /// What fuzzers have found worth keeping.
    #[test]
    fn the_corpora_are_survived() {
        for (name, target) in [
            ("gateway_toml", gateway_toml as fn(&[u8])),
            ("gateway_packets", gateway_packets),
            ("repair_packets", repair_packets),
        ] {
            let folder =
                std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
            let files = std::fs::read_dir(&folder).expect("a corpus").map(|f| f.expect("an entry").path());
            assert!(files.map(|f| target(&std::fs::read(f).expect("readable"))).count() > 0);
        }
    }

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

    /// Attackers of all kinds, most of whom act on a session that exists.
    #[test]
    fn whatever_an_attacker_does_no_datagram_is_made_up() {
        let mut rng = Rng::stream(3, "attackers");
        for n in 0..400 {
            let mut data = vec![n as u8, 0x0e, 255, 0x0e, 255];
            for _ in 0..rng.below(120) {
                data.extend([rng.below(256) as u8, rng.below(256) as u8]);
            }
            repair_packets(&data);
        }
    }

    /// Conversations of segments that are well-formed but for a byte here and there.
    #[test]
    fn whatever_passes_an_interface_is_counted_within_limits() {
        let mut rng = Rng::stream(2, "packets");
        for _ in 0..300 {
            let mut data = Vec::new();
            for _ in 0..rng.below(60) {
                let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1];
                let mut tcp = vec![0, 80, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0];
                (packet[15], packet[18], tcp[7]) =
                    (rng.below(3) as u8, rng.below(9) as u8, rng.below(200) as u8);
                packet[3] = 40 + rng.below(200) as u8;
                tcp[13] = [2, 18, 16, 17, 4, 20][rng.below(6) as usize];
                packet.extend(tcp);
                if rng.below(2) == 0 {
                    packet.copy_within(12..16, 16);
                }
                if rng.below(8) == 0 {
                    let at = rng.below(40) as usize;
                    packet[at] = rng.below(256) as u8;
                }
                data.extend([
                    rng.below(2) as u8,
                    rng.below(256) as u8,
                    0,
                    packet[3],
                    40 - rng.below(2) as u8,
                ]);
                data.extend(packet);
            }
            gateway_packets(&data);
        }
        for n in 0..2000 {
            let mut data = b"SkPT\x01".to_vec();
            data.extend((0..rng.below(70)).map(|_| rng.below(256) as u8));
            data.get_mut(5).into_iter().for_each(|kind| *kind = n as u8 % 7);
            gateway_packets(&data);
        }
    }
}
