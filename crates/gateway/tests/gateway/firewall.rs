//! A gateway beside the rules of a firewall that does not know of the gateway.

use crate::bed::{Bed, CLIENT, FAR, NEAR, Running};
use crate::{calm, listen, many, server};
use skyhaul_base::Instant;
use skyhaul_gateway::Config;
use skyhaul_gateway::doctor::{self, Finding, Outcome};
use skyhaul_net::Clock;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

pub(crate) const ALL: [(&str, fn()); 7] = [
    ("connections_that_are_dropped_are_forwarded", connections_that_are_dropped_are_forwarded),
    (
        "packets_over_the_link_that_are_dropped_end_splitting",
        packets_over_the_link_that_are_dropped_end_splitting,
    ),
    ("routes_and_interfaces_come_and_go", routes_and_interfaces_come_and_go),
    ("the_legs_of_a_connection_are_tracked_apart", the_legs_of_a_connection_are_tracked_apart),
    ("masqueraded_connections_are_split", masqueraded_connections_are_split),
    ("evaded_rules_are_listed_with_a_remedy", evaded_rules_are_listed_with_a_remedy),
    ("a_gateway_that_is_stopped_is_bypassed", a_gateway_that_is_stopped_is_bypassed),
];

/// Runs a line of shell in a namespace.
pub(crate) fn sh(bed: &Bed, at: usize, line: &str) {
    let run = || Command::new("sh").args(["-c", line]).output().expect("runs");
    let done = bed.spaces[at].within(run).expect("enters");
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Sets rules of a firewall.
pub(crate) fn rules(bed: &Bed, at: usize, text: &str) {
    sh(bed, at, &format!("nft -f - <<'end'\n{text}\nend"));
}

/// Rules of a stateful firewall, as many routers have them.
const STATEFUL: &str = "table inet filter {
    chain input { type filter hook input priority filter; policy accept; ct state invalid drop; }
    chain forward {
        type filter hook forward priority filter; policy drop;
        ct state invalid drop
        ct state established,related accept
        iifname { lan0, sky-near, sky-far } oifname sat0 accept
        iifname sat0 oifname { lan0, sky-near, sky-far } accept
        iifname { sky-near, sky-far } accept
        oifname { sky-near, sky-far } accept
    }
}";

fn the_legs_of_a_connection_are_tracked_apart() {
    let Some(bed) = Bed::new("tracked", calm()) else { return };
    for at in [NEAR, FAR] {
        rules(&bed, at, STATEFUL);
    }
    // If the kernel tracked both legs as one connection, the sequence numbers of one would be invalid for the other, even
    // with a gateway at one end alone.
    let near = bed.gateway(NEAR, "");
    many(&bed, server(), 4, 100_000);
    assert_eq!((near.count("from-hosts"), near.count("finished")), (4, 4));
    let far = bed.gateway(FAR, "");
    many(&bed, server(), 4, 100_000);
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (8, 4));
    assert_eq!((near.count("aborted"), far.count("aborted")), (0, 0));
    near.stop();
    far.stop();
}

/// The near router hides the addresses of hosts behind its own.
fn masqueraded_connections_are_split() {
    let Some(bed) = Bed::new("hidden", calm()) else { return };
    rules(
        &bed,
        NEAR,
        "table ip nat { chain out { type nat hook postrouting priority srcnat; oifname sat0 masquerade; }; }",
    );
    rules(&bed, NEAR, STATEFUL);
    let near = bed.gateway(NEAR, "");
    let listener = listen(&bed, server());
    let serves = std::thread::spawn(move || {
        (0..3)
            .map(|_| {
                let (mut s, from) = listener.accept().expect("accepts");
                let mut all = Vec::new();
                s.read_to_end(&mut all).expect("reads");
                s.write_all(&all).expect("writes");
                from.ip()
            })
            .collect::<Vec<_>>()
    });
    for n in 0..3 {
        let back = bed.spaces[CLIENT].within(|| {
            let mut s = TcpStream::connect(server()).expect("connects");
            s.set_read_timeout(Some(Duration::from_secs(20))).expect("sets");
            s.write_all(&vec![n; 100_000]).expect("writes");
            s.shutdown(std::net::Shutdown::Write).expect("half-closes");
            let mut back = Vec::new();
            s.read_to_end(&mut back).expect("reads");
            back
        });
        assert_eq!(back.expect("enters"), vec![n; 100_000]);
    }
    assert_eq!(serves.join().expect("serves"), [IpAddr::from([10, 9, 0, 1]); 3]);
    assert_eq!((near.count("from-hosts"), near.count("finished")), (3, 3), "they were split");
    near.stop();
}

pub(crate) fn since(began: Instant) -> Duration {
    Duration::from_nanos((Clock::now() - began).as_nanos())
}
/// Waits for an event that happens within seconds on an idle machine, and returns how long that took.
pub(crate) fn waits_for(what: &str, happens: impl Fn() -> bool) -> Duration {
    let began = Clock::now();
    while !happens() {
        assert!(since(began) < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
    since(began)
}

pub(crate) fn state(gateway: &Running) -> String {
    let status = gateway.status();
    status["proof"]["state"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned()
}
pub(crate) fn cause(gateway: &Running) -> String {
    let status = gateway.status();
    status["proof"]["cause"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned()
}
pub(crate) fn admits(gateway: &Running) -> bool {
    let status = gateway.status();
    status["admits"].as_bool().expect("a truth value")
}
/// What the doctor finds of the gateway that runs in the near router.
pub(crate) fn examined(bed: &Bed) -> Finding {
    let text = "name = \"near\"\n[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n";
    let config = Config::parse("near.toml", text).expect("is good");
    let all = bed.spaces[NEAR].within(|| doctor::examine(&config, &bed.folder)).expect("enters");
    let found = all.iter().find(|f| f.what == "the gateway that runs");
    found.unwrap_or_else(|| panic!("{all:#?}")).clone()
}

/// A server that sends back what it receives, five bytes at a time, until the test ends.
pub(crate) fn serve(bed: &Bed) {
    let listener = listen(bed, server());
    std::thread::spawn(move || {
        while let Ok((mut s, _)) = listener.accept() {
            std::thread::spawn(move || {
                let mut room = [0; 5];
                while s.read_exact(&mut room).is_ok() && s.write_all(&room).is_ok() {}
            });
        }
    });
}
/// How long it took until a connection of a client was answered.
fn answered(bed: &Bed) -> Duration {
    let ask = || {
        let began = Clock::now();
        let mut s = TcpStream::connect_timeout(&server(), Duration::from_secs(20)).expect("connects");
        s.set_read_timeout(Some(Duration::from_secs(20))).expect("sets");
        s.write_all(b"words").expect("writes");
        s.read_exact(&mut [0; 5]).expect("is answered");
        since(began)
    };
    bed.spaces[CLIENT].within(ask).expect("enters")
}

/// The longest time for which connections may be lost.
pub(crate) const AT_MOST: Duration = Duration::from_secs(5);

fn connections_that_are_dropped_are_forwarded() {
    let Some(bed) = Bed::new("dropped", calm()) else { return };
    serve(&bed);
    let log = bed.folder.join("events.jsonl");
    let near = bed.gateway(NEAR, &format!("[log]\nevents = \"{}\"\n", log.display()));
    waits_for("the gateway's own connection", || state(&near) == "works");
    assert!(
        examined(&bed).is_ok() && near.ask("metrics").contains("skyhaul_gateway_proven{gateway=\"near\"} 1")
    );
    answered(&bed);
    assert_eq!(near.count("from-hosts"), 1);
    // A service of a firewall reloads in this way: it replaces everything at once.
    let drops = "flush ruleset\ntable inet filter { chain input { type filter hook input priority filter; policy drop;
        ct state established,related accept; }; }";
    rules(&bed, NEAR, drops);
    let took = waits_for("the end of interception", || {
        let took = answered(&bed);
        assert!(took < AT_MOST, "{took:?}");
        state(&near) == "withdrawn" && !admits(&near)
    });
    assert!(took < 2 * AT_MOST, "{took:?}");
    // From then on nothing is lost: a lost SYN would be repeated after 1 s.
    let took = answered(&bed);
    assert!(took < Duration::from_millis(900), "{took:?}");
    assert_eq!(near.count("from-hosts"), 1, "they were not split");
    let remedy = "nft insert rule inet filter input meta mark 0x53480001 accept";
    assert!(cause(&near).ends_with(remedy), "{}", cause(&near));
    let found = examined(&bed);
    assert!(found.outcome == Outcome::Bad && found.message.ends_with(remedy), "{found:?}");
    let metrics = near.ask("metrics");
    for line in
        ["proven{gateway=\"near\"} 0", "admits{gateway=\"near\"} 0", "withdrawals_total{gateway=\"near\"} 1"]
    {
        assert!(metrics.contains(&format!("skyhaul_gateway_{line}")), "{line}: {metrics}");
    }
    let events = || std::fs::read_to_string(&log).expect("is there");
    assert!(events().contains("\"withdrawn\"") && events().contains(remedy), "{}", events());
    // The remedy takes effect at once.
    sh(&bed, NEAR, remedy);
    let took = waits_for("interception", || state(&near) == "works" && admits(&near));
    assert!(took < AT_MOST, "{took:?}");
    answered(&bed);
    assert_eq!(near.count("from-hosts"), 2);
    // If the rules let hosts pass, but not the gateway's own connection, connections of hosts decide.
    rules(
        &bed,
        NEAR,
        &format!("flush table inet filter\n{drops}\nadd rule inet filter input iifname lan0 accept")
            .replace("flush ruleset\n", ""),
    );
    waits_for("doubt", || state(&near) == "doubtful");
    assert!(admits(&near) && !examined(&bed).is_ok());
    answered(&bed);
    assert_eq!(near.count("from-hosts"), 3);
    waits_for("proof", || state(&near) == "works");
    assert!(examined(&bed).is_ok());
    assert_eq!(near.count_of("proof", "withdrawals"), 1);
    near.stop();
}

fn packets_over_the_link_that_are_dropped_end_splitting() {
    let Some(bed) = Bed::new("barred", calm()) else { return };
    serve(&bed);
    let near = bed.gateway(NEAR, "");
    waits_for("the gateway's own connection", || state(&near) == "works");
    // Rules for forwarded packets that do not mention the gateway's interface.
    rules(
        &bed,
        NEAR,
        "table inet filter { chain forward { type filter hook forward priority filter; policy drop;
        ct state established,related accept; iifname lan0 oifname sat0 accept; }; }",
    );
    // The connection whose leg over the link is dropped is lost; later ones are not.
    let lost = bed.spaces[CLIENT].within(|| TcpStream::connect(server()));
    let took = waits_for("the end of interception", || state(&near) == "withdrawn");
    assert!(took < AT_MOST, "{took:?}");
    answered(&bed);
    assert!(
        cause(&near).contains("nft insert rule inet filter forward iifname sky-near accept"),
        "{}",
        cause(&near)
    );
    drop(lost);
    sh(&bed, NEAR, "nft insert rule inet filter forward iifname sky-near accept");
    sh(&bed, NEAR, "nft insert rule inet filter forward oifname sky-near accept");
    waits_for("interception", || admits(&near));
    let before = near.count("from-hosts");
    answered(&bed);
    assert_eq!(near.count("from-hosts"), before + 1);
    near.stop();
}

fn routes_and_interfaces_come_and_go() {
    let Some(bed) = Bed::new("routes", calm()) else { return };
    serve(&bed);
    let near = bed.gateway(NEAR, "");
    let far = bed.gateway(FAR, "");
    let splits = |what: &str| {
        // Packets that arrive before the repair may be lost.
        let before = near.count("from-hosts");
        let split = || {
            let ask = || {
                let mut s = TcpStream::connect_timeout(&server(), Duration::from_secs(1))?;
                s.set_read_timeout(Some(Duration::from_secs(1)))?;
                s.write_all(b"words")?;
                s.read_exact(&mut [0; 5])
            };
            bed.spaces[CLIENT].within(ask).expect("enters").is_ok() && near.count("from-hosts") > before
        };
        let took = waits_for(&format!("splitting ({what})"), split);
        assert!(took < AT_MOST, "{what}: {took:?}");
    };
    splits("the start");
    for (what, line) in [
        ("rules of routing", "ip rule del priority 1; ip rule del priority 1"),
        ("the route to the sockets", "ip route flush table 21320"),
        ("the route to the gateway's host", "ip route flush table 21321"),
        ("the gateway's interface", "ip link set sky-near down; ip link set sky-near up"),
        ("the interface of hosts", "ip link set lan0 down; ip link set lan0 up"),
        ("the link", "ip link set sat0 down; ip link set sat0 up; ip route add 10.2.0.0/24 dev sat0"),
        ("an address", "ip addr del 10.1.0.1/24 dev lan0; ip addr add 10.1.0.1/24 dev lan0"),
    ] {
        sh(&bed, NEAR, line);
        splits(what);
    }
    // Damage that cannot be repaired ends splitting.
    sh(&bed, NEAR, "ip link set sky-near down");
    let took = waits_for("the end of interception", || state(&near) == "withdrawn" && !admits(&near));
    assert!(took < AT_MOST, "{took:?}");
    assert!(cause(&near).contains("cannot be restored"), "{}", cause(&near));
    let before = near.count("from-hosts");
    assert!(answered(&bed) < AT_MOST);
    assert_eq!(near.count("from-hosts"), before);
    sh(&bed, NEAR, "ip link set sky-near up");
    splits("the gateway's interface is up");
    // A connection without a route over the link is not split: its client gets the error of the kernel.
    let before = near.count("from-hosts");
    sh(&bed, NEAR, "ip route add unreachable 10.2.0.2");
    let refused =
        bed.spaces[CLIENT].within(|| TcpStream::connect(server())).expect("enters").expect_err("no way");
    assert_eq!(refused.kind(), std::io::ErrorKind::HostUnreachable);
    assert_eq!(near.count("from-hosts"), before);
    sh(&bed, NEAR, "ip route del unreachable 10.2.0.2");
    splits("there is a route");
    near.stop();
    far.stop();
}

/// Connects as a client, and sends and receives five bytes.
fn greets(bed: &Bed) -> std::io::Result<()> {
    let greet = || {
        let mut s = TcpStream::connect_timeout(&server(), Duration::from_secs(2))?;
        s.set_read_timeout(Some(Duration::from_secs(2)))?;
        s.write_all(b"hello")?;
        s.read_exact(&mut [0; 5])
    };
    bed.spaces[CLIENT].within(greet).expect("enters")
}

fn evaded_rules_are_listed_with_a_remedy() {
    let Some(bed) = Bed::new("evaded", calm()) else { return };
    let port = server().port();
    rules(
        &bed,
        NEAR,
        &format!(
            "table inet filter {{
                chain input {{ type filter hook input priority filter; policy accept; }}
                chain forward {{
                    type filter hook forward priority filter; policy accept;
                    iifname lan0 oifname sat0 tcp dport {port} reject with tcp reset
                    iifname docker0 drop
                }}
            }}"
        ),
    );
    serve(&bed);
    greets(&bed).expect_err("it is forbidden");
    let listed = |more: &str| {
        let text = format!(
            "name = \"near\"\n[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n{more}"
        );
        let config = Config::parse("near.toml", &text).expect("is good");
        bed.spaces[NEAR].within(|| doctor::evaded(&config)).expect("enters")
    };
    let found = listed("");
    let [one] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((one.outcome, one.what.as_str()), (Outcome::Doubtful, "rule of inet filter forward"));
    let excluded = format!("[split]\nexclude-ports = [179, {port}]\n");
    assert!(one.message.contains(excluded.lines().nth(1).expect("a line")), "{}", one.message);
    assert_eq!(listed(&excluded), [], "these connections are forwarded, and meet the rule");
    // Both remedies keep what is forbidden from passing.
    let near = bed.gateway(NEAR, &excluded);
    greets(&bed).expect_err("it is forwarded, and forbidden");
    assert_eq!(near.count("from-hosts"), 0);
    near.stop();
    let near = bed.gateway(NEAR, "");
    greets(&bed).expect("it is split, and evades the rule");
    let rule = one.message.split("hook input: ").nth(1).expect("a rule");
    sh(&bed, NEAR, &format!("nft 'insert rule inet filter input {rule}'"));
    greets(&bed).expect_err("it is forbidden again");
    assert_eq!(near.count("from-hosts"), 1);
}

fn a_gateway_that_is_stopped_is_bypassed() {
    use nix::sys::signal::{Signal, kill};
    let Some(bed) = Bed::new("stopped", calm()) else { return };
    serve(&bed);
    let near = bed.gateway(NEAR, "");
    waits_for("the proof", || state(&near) == "works");
    greets(&bed).expect("it is split");
    let signal = |s: Signal| {
        kill(nix::unistd::Pid::from_raw(near.child.id() as i32), s).expect("is ours");
    };
    signal(Signal::SIGSTOP);
    waits_for("a connection past the gateway", || greets(&bed).is_ok());
    signal(Signal::SIGCONT);
    // The gateway counts connections that the kernel has accepted for it while it was stopped: they must not count below.
    waits_for("an end of all connections", || near.count("flows") == 0);
    waits_for("a connection that is split", || {
        let before = near.count("from-hosts");
        greets(&bed).is_ok() && near.count("from-hosts") > before
    });
    assert!(admits(&near));
    near.stop();
}
