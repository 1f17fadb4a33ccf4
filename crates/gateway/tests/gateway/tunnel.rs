//! A tunnel between the client and the server of a bed, which no gateway can read: WireGuard, or ESP in tunnel mode (RFC 4303).

use crate::bed::{Bed, CLIENT, SERVER};
use skyhaul_net::Namespace;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The address of the server inside a tunnel; that of the client is [`HERE`].
pub(crate) const THERE: [u8; 4] = [10, 77, 0, 2];
/// The address of the client inside a tunnel.
#[allow(dead_code, reason = "only the benchmark needs it")]
pub(crate) const HERE: [u8; 4] = [10, 77, 0, 1];
/// MTU inside a tunnel: its packets fit into the repaired path, which has 1,442 bytes at 1,500 of the link.
const MTU: u16 = 1380;
/// UDP port of WireGuard.
const PORT: u16 = 51_820;

/// What a tunnel needs and the machine lacks: its name, and what is missing.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    pub(crate) need: &'static str,
    pub(crate) why: String,
}

/// A tunnel; dropping it ends its programs.
pub(crate) struct Tunnel<'a> {
    bed: &'a Bed,
    programs: Vec<(usize, String, Child)>,
}

/// Runs a line of a shell in a namespace; returns what it says, or its errors.
fn sh(space: &Namespace, line: &str) -> Result<String, String> {
    let run = || Command::new("sh").args(["-c", line]).output().expect("runs");
    let out = space.within(run).expect("enters");
    let text = |of: &[u8]| String::from_utf8_lossy(of).trim().to_owned();
    if out.status.success() { Ok(text(&out.stdout)) } else { Err(text(&out.stderr)) }
}
fn must(space: &Namespace, line: &str) -> String {
    sh(space, line).unwrap_or_else(|e| panic!("{line}: {e}"))
}
/// Whether a line of a shell succeeds within half a minute: a handshake whose packet is lost is repeated after five seconds.
fn comes(space: &Namespace, line: &str) -> bool {
    (0..600).any(|_| {
        let is_there = sh(space, line).is_ok();
        if !is_there {
            std::thread::sleep(Duration::from_millis(50));
        }
        is_there
    })
}

/// The ends: the namespace, the address in the network of the bed, and the one in the tunnel.
const ENDS: [(usize, &str, [u8; 4]); 2] = [(CLIENT, "10.1.0.2", HERE), (SERVER, "10.2.0.2", THERE)];

fn dotted(address: [u8; 4]) -> String {
    std::net::Ipv4Addr::from(address).to_string()
}

impl<'a> Tunnel<'a> {
    /// WireGuard by the program wireguard-go, which every kernel with TUN devices can run.
    ///
    /// # Errors
    /// If a program is not installed.
    pub(crate) fn wireguard(bed: &'a Bed) -> Result<Self, Missing> {
        for need in ["wireguard-go", "wg"] {
            if sh(&bed.spaces[CLIENT], &format!("command -v {need}")).is_err() {
                return Err(Missing { need, why: "it is not installed".into() });
            }
        }
        let mut tunnel = Self { bed, programs: Vec::new() };
        let keys = ENDS.map(|(at, ..)| {
            let private = must(&bed.spaces[at], "wg genkey");
            let public = must(&bed.spaces[at], &format!("echo {private} | wg pubkey"));
            (private, public)
        });
        // The server is ready when the client calls. Only one of them calls: over a long path two handshakes would cross, and each would end the other.
        for (n, calls) in [(1, ""), (0, "persistent-keepalive 5")] {
            let (at, _, inside) = ENDS[n];
            let space = &bed.spaces[at];
            // The control socket has the name of the interface, in a folder that all namespaces share.
            let name = format!("wg{}{}", std::process::id(), ["c", "s"][n]);
            let start = || {
                Command::new("wireguard-go")
                    .args(["-f", &name])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("is installed")
            };
            tunnel.programs.push((at, name.clone(), space.within(start).expect("enters")));
            assert!(comes(space, &format!("wg show {name}")), "wireguard-go answers");
            let (_, other, other_inside) = ENDS[1 - n];
            must(
                space,
                &format!(
                    "echo {} | wg set {name} listen-port {PORT} private-key /dev/stdin peer {} endpoint {other}:{PORT} \
                     allowed-ips {}/32 {calls} && ip link set {name} mtu {MTU} up && ip addr add {}/24 dev {name}",
                    keys[n].0,
                    keys[1 - n].1,
                    dotted(other_inside),
                    dotted(inside)
                ),
            );
        }
        let (at, name, _) = &tunnel.programs[1];
        let greeted = format!("wg show {name} latest-handshakes | grep -qv '\\b0$'");
        assert!(comes(&bed.spaces[*at], &greeted), "the ends of the tunnel find each other");
        Ok(tunnel)
    }

    /// ESP by the kernel, with AES-CBC and HMAC-SHA-256, or without encryption where the kernel lacks the cipher.
    ///
    /// # Errors
    /// If the kernel has no ESP.
    pub(crate) fn esp(bed: &'a Bed) -> Result<Self, Missing> {
        let hex = |n: u8| (0..n).map(|b| format!("{b:02x}")).collect::<String>();
        let sign = format!("auth 'hmac(sha256)' 0x{}", hex(32));
        let ciphers = [format!("enc 'cbc(aes)' 0x{}", hex(16)), "enc 'ecb(cipher_null)' ''".to_owned()];
        let between = |from: usize, to: usize| format!("src {} dst {}", ENDS[from].1, ENDS[to].1);
        let add = |at: usize, from: usize, cipher: &str| {
            let line = format!(
                "ip xfrm state add {} proto esp spi 0x{} mode tunnel replay-window 32 {sign} {cipher}",
                between(from, 1 - from),
                101 + from
            );
            sh(&bed.spaces[ENDS[at].0], &line)
        };
        let mut refused = String::new();
        let cipher = ciphers.iter().find(|c| match add(0, 0, c) {
            Ok(_) => true,
            Err(why) => {
                refused = why;
                false
            }
        });
        let Some(cipher) = cipher else {
            let why =
                format!("the kernel takes no state of ESP (CONFIG_INET_ESP, CONFIG_CRYPTO_CBC): {refused}");
            return Err(Missing { need: "esp", why });
        };
        for (at, from) in [(0, 1), (1, 0), (1, 1)] {
            add(at, from, cipher).expect("the kernel took the first one");
        }
        for (n, (at, _, inside)) in ENDS.into_iter().enumerate() {
            let (space, link) = (&bed.spaces[at], ["c0", "s0"][n]);
            let (here, there) = (dotted(inside), dotted(ENDS[1 - n].2));
            for (way, from, to, outer) in
                [("out", &here, &there, between(n, 1 - n)), ("in", &there, &here, between(1 - n, n))]
            {
                must(
                    space,
                    &format!(
                        "ip xfrm policy add src {from} dst {to} dir {way} tmpl {outer} proto esp mode tunnel"
                    ),
                );
            }
            must(
                space,
                &format!(
                    "ip addr add {here}/32 dev {link} && ip route add {there} dev {link} src {here} mtu {MTU}"
                ),
            );
        }
        Ok(Self { bed, programs: Vec::new() })
    }
}

impl Drop for Tunnel<'_> {
    fn drop(&mut self) {
        for (at, name, program) in &mut self.programs {
            // Without its interface the program ends, and removes its control socket.
            if sh(&self.bed.spaces[*at], &format!("ip link del {name}")).is_err() {
                let _ = program.kill();
            }
            let _ = program.wait();
        }
    }
}
