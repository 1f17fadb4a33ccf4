//! A network of namespaces: a client, two routers with a satellite link between them, a server. Each link is a thread that
//! carries packets between two TUN interfaces.

use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_gateway::status::Status;
use skyhaul_gateway::{Config, RunObserver};
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::wait::{Wait, Waker};
use skyhaul_net::{Clock, Namespace};
use skyhaul_testkit::need;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

#[path = "report.rs"]
mod report;

/// Prints a line once the gateway is ready.
pub(crate) struct Ready;

impl RunObserver for Ready {
    fn ready(&mut self, _: Waker) {
        println!("ready");
    }
    fn turn(&mut self, _: &dyn Fn(bool) -> Status) -> bool {
        false
    }
    fn note(&mut self, line: &str) {
        eprintln!("note: {line}");
    }
}

/// With this in the environment, connections of the second arm of a gateway's A/B test panic.
pub(crate) const BREAKS: &str = "SKYHAUL_TEST_BREAKS";

/// A program with a bed starts itself once more, as a gateway and as the keeper of that. Runs as one of them if the arguments say so, and
/// returns whether they did.
pub(crate) fn stands_in(args: &[String]) -> bool {
    match args.first().map(String::as_str) {
        Some("gateway-run") => {
            let run = || {
                let file = Path::new(&args[1]);
                let mut config = Config::read(file)?;
                if std::env::var_os(BREAKS).is_some() {
                    // No program has provided this control: whoever wants one panics.
                    if let Some(other) = &mut config.other {
                        other.cc = skyhaul_cc::Config::User(skyhaul_cc::user::Config::new("missing"));
                    }
                }
                skyhaul_gateway::run(&config, &environment(file, Path::new(&args[2])), &mut Ready)
            };
            if let Err(e) = run() {
                eprintln!("{e}");
                std::process::exit(2);
            }
        }
        Some("gateway-keep") => skyhaul_gateway::system::keep(&args[1..]),
        _ => return false,
    }
    true
}

/// The number of threads of each gateway, except one with pacing, which needs a single thread.
pub(crate) static THREADS: AtomicUsize = AtomicUsize::new(1);

/// The text of a file with [`THREADS`] threads.
fn threaded(text: &str) -> String {
    let threads = THREADS.load(Ordering::Relaxed);
    if threads == 1 || text.contains("\nrate = ") {
        return text.into();
    }
    let limits = format!("[limits]\nthreads = {threads}\n");
    if text.contains("[limits]\n") {
        text.replace("[limits]\n", &limits)
    } else {
        format!("{text}\n{limits}")
    }
}

/// The indices of the namespaces in [`Bed::spaces`].
pub(crate) const CLIENT: usize = 0;
pub(crate) const NEAR: usize = 1;
pub(crate) const FAR: usize = 2;
pub(crate) const SERVER: usize = 3;

/// The properties of a link; the default one is perfect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    /// One-way delay.
    pub(crate) delay: Duration,
    /// Probability that a packet is lost behind the queue.
    pub(crate) loss: f64,
    /// The rate, and the length of the queue in front of it, packets; `None`: no limit.
    pub(crate) rate: Option<(Rate, usize)>,
    /// Another rate and queue from the near router to the far one, such as a narrow return link.
    pub(crate) narrow: Option<(Rate, usize)>,
    /// Whether the queue has two classes: packets of low priority are sent last and dropped first.
    pub(crate) priority: bool,
    pub(crate) noise: Noise,
    /// The longest packet of IPv4 and of IPv6 that passes; a router reports longer ones.
    pub(crate) mtu: Option<[u16; 2]>,
    /// The longest packet that passes; longer ones disappear, and nobody says so.
    pub(crate) hole: Option<usize>,
    /// The link carries nothing between these two times since its beginning.
    pub(crate) outage: Option<[Duration; 2]>,
}

/// A queue in front of a rate, with two classes: packets of low priority (LE, RFC 8622) are served when no other waits, and pushed
/// out by others.
struct Classes {
    wire: Serializer,
    most: usize,
    waiting: [VecDeque<(Instant, Vec<u8>)>; 2],
}

impl Classes {
    fn put(&mut self, now: Instant, packet: &[u8]) {
        // DSCP 1, in the second byte of IPv4, and in the traffic class of IPv6.
        let dscp = match packet[0] >> 4 {
            4 => packet[1] >> 2,
            _ => (packet[0] << 4 | packet[1] >> 4) >> 2,
        };
        let low = dscp == 1;
        let full = self.waiting.iter().map(VecDeque::len).sum::<usize>() > self.most;
        if !full || (!low && self.waiting[1].pop_back().is_some()) {
            self.waiting[usize::from(low)].push_back((now, packet.to_vec()));
        }
    }
    /// When the next packet starts to leave, and its class.
    fn due(&self) -> Option<(Instant, usize)> {
        let first = |class: usize| self.waiting[class].front().map(|(at, _)| (*at).max(self.wire.free_at()));
        let heads = [first(0).map(|at| (at, 0)), first(1).map(|at| (at, 1))];
        heads.into_iter().flatten().min()
    }
    /// The next packet that has left the queue by now, and when its last bit left.
    fn next(&mut self, now: Instant) -> Option<(Instant, Vec<u8>)> {
        let (start, class) = self.due().filter(|(at, _)| *at <= now)?;
        let (_, packet) = self.waiting[class].pop_front()?;
        Some((self.wire.send(start, packet.len() as u32), packet))
    }
}

/// The probability of each event for a packet behind the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noise {
    /// It arrives twice.
    pub(crate) duplicate: f64,
    /// It is up to 5 ms late, so that others overtake it.
    pub(crate) reorder: f64,
    /// One of its bits is flipped, which its checksum shows.
    pub(crate) corrupt: f64,
    /// An attacker who knows its addresses and ports, but not its sequence numbers, sends another one with a valid checksum, and with
    /// random flags, window, options and payload.
    pub(crate) forge: f64,
    /// The link carries nothing for 300 ms.
    pub(crate) stall: f64,
}

impl Noise {
    /// The packets that arrive in place of one, each with its additional delay.
    fn of(&self, packet: &[u8], rng: &mut Rng) -> Vec<(Duration, Vec<u8>)> {
        let mut arrives = vec![(Duration::ZERO, packet.to_vec())];
        if rng.unit() < self.duplicate {
            arrives.push((Duration::from_millis(1), packet.to_vec()));
        }
        if rng.unit() < self.reorder {
            arrives[0].0 = Duration::from_micros(rng.below(5000));
        }
        if rng.unit() < self.corrupt {
            let bit = rng.below(packet.len() as u64 * 8) as usize;
            arrives[0].1[bit / 8] ^= 1 << (bit % 8);
        }
        if rng.unit() < self.forge {
            let mut other = packet.to_vec();
            // Behind an IPv4 header without options and the ports, bytes 24 to 31 are the sequence and acknowledgement numbers. They are
            // random, since an attacker off the path does not know them. So is a third of the rest of the longest TCP header, and the payload.
            for (at, byte) in other.iter_mut().enumerate().skip(24) {
                if !(32..60).contains(&at) || rng.below(3) == 0 {
                    *byte = rng.below(256) as u8;
                }
            }
            skyhaul_testkit::fuzz::repair(&mut other);
            arrives.push((Duration::ZERO, other));
        }
        arrives
    }
}

/// The network.
pub(crate) struct Bed {
    pub(crate) spaces: Vec<Namespace>,
    stop: Arc<AtomicBool>,
    cables: Vec<JoinHandle<()>>,
    pub(crate) folder: PathBuf,
}

fn open(space: &Namespace, name: &str, addresses: &[(&str, u8)]) -> Tun {
    let addresses = addresses.iter().map(|(a, n)| (a.parse().expect("an address"), *n)).collect();
    let config = TunConfig { name: Some(name.into()), addresses, mtu: 1500, offload: false };
    space.within(|| Tun::open(&config)).expect("enters").expect("opens")
}

/// Packets that cables have carried, those that they have carried later than [`TOLERANCE`] after their time, and how late the last
/// one was, nanoseconds: a busy machine delays what a link would not.
pub(crate) static CARRIED: AtomicU64 = AtomicU64::new(0);
pub(crate) static LATE: AtomicU64 = AtomicU64::new(0);
pub(crate) static LATEST: AtomicU64 = AtomicU64::new(0);
/// Packets that were too long for a hole.
pub(crate) static SWALLOWED: AtomicU64 = AtomicU64::new(0);
const TOLERANCE: Duration = Duration::from_millis(2);

/// Carries packets both ways until told to stop.
fn cable(ends: [Tun; 2], link: Link, stop: Arc<AtomicBool>, seed: u64) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut wait = Wait::on(&[&ends[0], &ends[1]]).expect("waits");
        let mut rng = Rng::stream(seed, "cable");
        let mut flying: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
        let mut buf = vec![0; 1 << 16];
        // When each packet of the queue in front of the link has left.
        let mut queues: [VecDeque<Instant>; 2] = Default::default();
        let mut stalled = Instant::ZERO;
        let rates = [link.narrow.or(link.rate), link.rate];
        let mut wires = rates.map(|of| of.map(|(rate, most)| (Serializer::new(rate), most)));
        let mut classes = link.rate.filter(|_| link.priority).map(|(rate, most)| {
            [(); 2].map(|()| Classes { wire: Serializer::new(rate), most, waiting: Default::default() })
        });
        let mut left_now = Vec::new();
        let began = Clock::now();
        while !stop.load(Ordering::Relaxed) {
            let now = Clock::now();
            for way in 0..2 {
                while let Some(n) = ends[way].read(&mut buf).expect("the interface stays") {
                    if let Some(mtu) = link.mtu
                        && let Some(report) = report::too_long(&buf[..n], mtu)
                    {
                        ends[way].write(&report).expect("the interface stays");
                        continue;
                    }
                    if link.outage.is_some_and(|[from, to]| (from..to).contains(&(now - began))) {
                        continue;
                    }
                    if link.hole.is_some_and(|longest| n > longest) {
                        SWALLOWED.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let mut left = now;
                    if let Some(classes) = &mut classes {
                        classes[way].put(now, &buf[..n]);
                        continue;
                    }
                    if let Some((wire, most)) = &mut wires[way] {
                        let queue = &mut queues[way];
                        while queue.front().is_some_and(|at| *at <= now) {
                            queue.pop_front();
                        }
                        if queue.len() > *most {
                            continue;
                        }
                        left = wire.send(now, n as u32);
                        queue.push_back(left);
                    }
                    left_now.push((left, buf[..n].to_vec()));
                }
                if let Some(classes) = &mut classes {
                    while let Some(left) = classes[way].next(now) {
                        left_now.push(left);
                    }
                }
                for (left, packet) in left_now.drain(..) {
                    // Lost behind the queue, as on a radio link.
                    if rng.unit() < link.loss {
                        continue;
                    }
                    if rng.unit() < link.noise.stall {
                        stalled = now + Duration::from_millis(300);
                    }
                    for (late, packet) in link.noise.of(&packet, &mut rng) {
                        let at = left.max(stalled) + link.delay + late;
                        let flying = &mut flying[way];
                        let place = flying.iter().rposition(|(other, _)| *other <= at).map_or(0, |n| n + 1);
                        flying.insert(place, (at, packet));
                    }
                }
                while flying[way].front().is_some_and(|(at, _)| *at <= now) {
                    let (at, packet) = flying[way].pop_front().expect("there");
                    CARRIED.fetch_add(1, Ordering::Relaxed);
                    LATE.fetch_add(u64::from(now - at > TOLERANCE), Ordering::Relaxed);
                    LATEST.fetch_max((now - at).as_nanos(), Ordering::Relaxed);
                    // A packet that noise has changed may be none any more, so that the interface refuses it.
                    let written = ends[1 - way].write(&packet);
                    assert!(
                        written.is_ok() || link.noise.corrupt + link.noise.forge > 0.0,
                        "the interface stays"
                    );
                }
            }
            let next = flying.iter().filter_map(|f| f.front()).map(|(at, _)| *at).min();
            let due = classes.iter().flatten().filter_map(|c| c.due()).map(|(at, _)| at).min();
            let next = next.into_iter().chain(due).min();
            let again = now + Duration::from_millis(100);
            wait.until(next.unwrap_or(again).min(again)).expect("waits");
        }
    })
}

/// One end of a link: where it is, its name, and its addresses with the lengths of their prefixes.
pub(crate) type Plug<'a> = (&'a Namespace, &'a str, &'a [(&'a str, u8)]);

/// Makes a pair of interfaces of the kernel (veth) with its offloads, each in a namespace of its own.
pub(crate) fn wire(ends: [Plug<'_>; 2]) {
    let sh = |space: &Namespace, line: &str| {
        let run = || Command::new("sh").args(["-c", line]).status().is_ok_and(|s| s.success());
        assert!(space.within(run).expect("enters"), "{line}");
    };
    let [(a, here, _), (b, there, _)] = ends;
    // Somebody must be in a namespace for it to have a name.
    let sleep = || Command::new("sleep").arg("1000").spawn().expect("starts");
    let mut inhabitant = b.within(sleep).expect("enters");
    sh(a, &format!("ip link add {here} type veth peer name {there} netns {}", inhabitant.id()));
    let _ = inhabitant.kill();
    let _ = inhabitant.wait();
    for (space, name, addresses) in ends {
        for (address, prefix) in addresses {
            let more = if address.contains(':') { "nodad" } else { "" };
            sh(space, &format!("ip addr add {address}/{prefix} dev {name} {more}"));
        }
        // Routes name no router, so that each machine answers ARP requests for the hosts behind it. It does so at once: by default the kernel
        // waits for up to 0.8 s.
        let ipv4 = "/proc/sys/net/ipv4";
        sh(
            space,
            &format!(
                "echo 1 > {ipv4}/conf/{name}/proxy_arp; echo 0 > {ipv4}/neigh/{name}/proxy_delay; ip link set {name} up"
            ),
        );
    }
    // A packet that is sent before the kernel has noticed that the link is up would be lost, and repeated a second later.
    for (space, name, _) in ends {
        let noticed = format!("ip -o link show dev {name} | grep -q 'state UP'");
        sh(space, &format!("for n in $(seq 500); do {noticed} && exit 0; sleep 0.01; done; exit 1"));
    }
}

/// A folder for the files of gateways.
fn folder_of(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("skyhaul-gateway-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

impl Bed {
    /// A network with pairs of kernel interfaces in place of threads, and a link that is as fast and as good as they are.
    #[allow(dead_code, reason = "the soak test does not need it")]
    pub(crate) fn fast(name: &str) -> Option<Self> {
        Self::laid(name, None)
    }
    /// A network with this satellite link; `None`, with a message, where the kernel grants no namespace or there is no nft.
    pub(crate) fn new(name: &str, satellite: Link) -> Option<Self> {
        Self::laid(name, Some(satellite))
    }
    /// Namespaces without any link between them.
    #[allow(dead_code, reason = "the soak test does not need it")]
    pub(crate) fn bare(name: &str, spaces: usize) -> Option<Self> {
        if !need::program("nft") {
            return None;
        }
        let spaces: Result<Vec<_>, _> = (0..spaces).map(|_| Namespace::new()).collect();
        let spaces = need::granted(spaces)?;
        Some(Self { spaces, stop: Arc::default(), cables: Vec::new(), folder: folder_of(name) })
    }
    fn laid(name: &str, satellite: Option<Link>) -> Option<Self> {
        if !need::program("nft") {
            return None;
        }
        let spaces: Result<Vec<_>, _> = (0..4).map(|_| Namespace::new()).collect();
        let spaces = need::granted(spaces)?;
        let [c, g1, g2, s] = [0, 1, 2, 3].map(|n: usize| &spaces[n]);
        let plugs: [[Plug<'_>; 2]; 3] = [
            [
                (c, "c0", &[("10.1.0.2", 24), ("fd01::2", 64)]),
                (g1, "lan0", &[("10.1.0.1", 24), ("fd01::1", 64)]),
            ],
            [
                (g1, "sat0", &[("10.9.0.1", 24), ("fd09::1", 64)]),
                (g2, "sat0", &[("10.9.0.2", 24), ("fd09::2", 64)]),
            ],
            [
                (g2, "lan0", &[("10.2.0.1", 24), ("fd02::1", 64)]),
                (s, "s0", &[("10.2.0.2", 24), ("fd02::2", 64)]),
            ],
        ];
        let stop = Arc::new(AtomicBool::new(false));
        let mut cables = Vec::new();
        for (n, ends) in plugs.into_iter().enumerate() {
            match satellite {
                Some(satellite) => {
                    let link = if n == 1 { satellite } else { Link::default() };
                    let ends = ends.map(|(space, name, addresses)| open(space, name, addresses));
                    cables.push(cable(ends, link, stop.clone(), n as u64 + 1));
                }
                None => wire(ends),
            }
        }
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (space, interface, v4, v6) in [
            (c, "c0", ("0.0.0.0", 0), ("::", 0)),
            (s, "s0", ("0.0.0.0", 0), ("::", 0)),
            (g1, "sat0", ("10.2.0.0", 24), ("fd02::", 64)),
            (g2, "sat0", ("10.1.0.0", 24), ("fd01::", 64)),
        ] {
            space.route((ip(v4.0), v4.1), interface, None).expect("a route");
            space.route((ip(v6.0), v6.1), interface, None).expect("a route");
        }
        Some(Self { spaces, stop, cables, folder: folder_of(name) })
    }

    /// Starts a gateway in a router and waits until it is ready; `more` is added to its file.
    pub(crate) fn gateway(&self, at: usize, more: &str) -> Running {
        self.gateway_of(at, more, "", "")
    }
    /// Starts a gateway; `hosts` is added to the section `[terrestrial]` of its file, `more` to `[satellite]`, and `first` to its beginning.
    pub(crate) fn gateway_of(&self, at: usize, more: &str, hosts: &str, first: &str) -> Running {
        self.gateway_for(
            at,
            &format!(
                "{first}[terrestrial]\ninterface = \"lan0\"\n{hosts}[satellite]\ninterface = \"sat0\"\n{more}"
            ),
        )
    }
    /// Starts a gateway with this file, which lacks only the name.
    pub(crate) fn gateway_for(&self, at: usize, text: &str) -> Running {
        self.gateway_by(&[], at, text)
    }
    /// Starts a gateway with this file by a command that runs the program that is appended to it.
    pub(crate) fn gateway_by(&self, starter: &[&str], at: usize, text: &str) -> Running {
        let name = match at {
            NEAR => "near",
            FAR => "far",
            _ => "second",
        };
        self.gateway_named(name, starter, at, text)
    }
    /// Starts a gateway with this name.
    pub(crate) fn gateway_named(&self, name: &str, starter: &[&str], at: usize, text: &str) -> Running {
        let file = self.folder.join(format!("{name}.toml"));
        let text = threaded(&format!("name = \"{name}\"\n{text}"));
        std::fs::write(&file, text).expect("writes");
        let ourselves = std::env::current_exe().expect("there");
        let mut command = match starter.split_first() {
            Some((program, args)) => {
                let mut command = Command::new(program);
                command.args(args).arg(ourselves);
                command
            }
            None => Command::new(ourselves),
        };
        command.arg("gateway-run").arg(&file).arg(&self.folder).stdout(Stdio::piped());
        let mut child = self.spaces[at].within(|| command.spawn().expect("starts")).expect("enters");
        let mut said = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut said).expect("reads");
        assert_eq!(said.trim(), "ready", "the gateway says why not");
        Running { child, name: name.into(), folder: self.folder.clone() }
    }

    /// The nftables tables of a router.
    pub(crate) fn traces(&self, at: usize) -> String {
        let list = || {
            let out = Command::new("nft").args(["list", "tables"]).output().expect("runs");
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        self.spaces[at].within(list).expect("enters")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for cable in self.cables.drain(..) {
            let _ = cable.join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A gateway that runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    name: String,
    folder: PathBuf,
}

impl Running {
    pub(crate) fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.ask("status")).expect("JSON")
    }
    /// A number of its status.
    pub(crate) fn count(&self, key: &str) -> u64 {
        let status = self.status();
        let found = status.get(key).or_else(|| status["counts"].get(key));
        found.and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("{key} in {status}"))
    }
    /// A number of a part of its status.
    #[allow(dead_code, reason = "the soak test does not need it")]
    pub(crate) fn count_of(&self, part: &str, key: &str) -> u64 {
        let status = self.status();
        status[part][key].as_u64().unwrap_or_else(|| panic!("{part}.{key} in {status}"))
    }
    pub(crate) fn ask(&self, word: &str) -> String {
        skyhaul_gateway::control::ask(&self.folder, &self.name, word).expect("answers")
    }
    pub(crate) fn stop(mut self) {
        self.ask("stop");
        assert!(self.child.wait().expect("ends").success());
    }
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("is ours");
        self.child.wait().expect("ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The environment of a gateway with this file and folder, whose keeper is this program.
pub(crate) fn environment(file: &Path, folder: &Path) -> skyhaul_gateway::Environment {
    let ourselves = std::env::current_exe().expect("there").into();
    skyhaul_gateway::Environment {
        folder: folder.into(),
        file: file.into(),
        keeper: vec![ourselves, "gateway-keep".into()],
        metrics: None,
    }
}
