//! `gateway` as operators and service managers meet it, in a network namespace of the tests' own.
#![cfg(target_os = "linux")]

use skyhaul_net::Namespace;
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_testkit::need;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const SKYHAUL: &str = env!("CARGO_BIN_EXE_skyhaul");

/// A router with two interfaces that lead nowhere, and a folder with the file of a gateway.
struct Router {
    space: Namespace,
    _ends: [Tun; 2],
    folder: PathBuf,
}

impl Router {
    /// `None`, with a message, where the kernel does not grant a namespace or there is no nft.
    fn new(name: &str, more: &str) -> Option<Self> {
        if !need::program("nft") {
            return None;
        }
        let space = need::granted(Namespace::new())?;
        let open = |name: &str, address: [u8; 4]| {
            let addresses = vec![(address.into(), 24)];
            let config = TunConfig { name: Some(name.into()), addresses, mtu: 1500, offload: false };
            space.within(|| Tun::open(&config)).expect("enters").expect("opens")
        };
        let ends = [open("lan0", [10, 1, 0, 1]), open("sat0", [10, 9, 0, 1])];
        space.sysctl("net/ipv4/ip_forward", "1").expect("sets");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gateway-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for the test");
        let text = format!(
            "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n[limits]\ndrain = \"1 s\"\n{more}"
        );
        fs::write(folder.join("g.toml"), text).expect("writes");
        Some(Self { space, _ends: ends, folder })
    }
    fn command(&self, args: &[&str]) -> Command {
        let mut c = Command::new(SKYHAUL);
        c.arg("gateway").args(args).current_dir(&self.folder);
        c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        c
    }
    fn start(&self, command: &mut Command) -> Child {
        self.space.within(|| command.spawn()).expect("enters").expect("starts")
    }
    fn run(&self, args: &[&str]) -> Output {
        self.start(&mut self.command(&[args, &["--runtime", "run"]].concat()))
            .wait_with_output()
            .expect("ends")
    }
    fn good(&self, args: &[&str]) -> String {
        let out = self.run(args);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{args:?}: {stderr}");
        String::from_utf8_lossy(&out.stdout).into_owned() + &stderr
    }
    /// Runs a command that ends with status 2 and one line that contains `part`.
    fn bad(&self, args: &[&str], part: &str) {
        let out = self.run(args);
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), stderr.trim().lines().count()), (Some(2), 1), "{args:?}: {stderr}");
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
    fn tables(&self) -> String {
        let list = || Command::new("nft").args(["list", "tables"]).output().expect("runs");
        String::from_utf8_lossy(&self.space.within(list).expect("enters").stdout).into_owned()
    }
    /// Waits until a gateway that was started answers.
    fn ready(&self) {
        for _ in 0..1000 {
            if self.run(&["status"]).status.success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not answer");
    }
}

/// The next message to a service manager: a list of assignments.
fn next_message(manager: &UnixDatagram) -> Vec<String> {
    let mut room = [0; 4096];
    // A signal interrupts a read that has a time limit.
    let n = loop {
        match manager.recv(&mut room) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            n => break n.expect("a message"),
        }
    };
    String::from_utf8_lossy(&room[..n]).lines().map(str::to_owned).collect()
}

#[test]
fn a_service_manager_is_told_what_happens() {
    let Some(router) = Router::new("notify", "") else { return };
    // A socket in the file system, and one with an abstract name (unix(7)).
    let path = router.folder.join("notify.sock");
    let name = format!("skyhaul-test-{}", std::process::id());
    let abstracted = SocketAddr::from_abstract_name(&name).expect("a name");
    for (address, manager) in [
        (path.display().to_string(), UnixDatagram::bind(&path).expect("binds")),
        // An abstract name belongs to a network namespace.
        (
            format!("@{name}"),
            router.space.within(|| UnixDatagram::bind_addr(&abstracted)).expect("enters").expect("binds"),
        ),
    ] {
        manager.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
        let mut command = router.command(&["run", "g.toml", "--runtime", "run"]);
        command.env("NOTIFY_SOCKET", &address).env("WATCHDOG_USEC", "200000").env_remove("WATCHDOG_PID");
        let gateway = router.start(&mut command);
        assert_eq!(next_message(&manager), ["READY=1"]);
        // Messages to the watchdog come regularly while nothing else happens.
        for _ in 0..3 {
            let message = next_message(&manager);
            assert_eq!(message, ["WATCHDOG=1", "STATUS=0 connections"]);
        }
        let reload = std::thread::scope(|s| {
            let asked = s.spawn(|| router.good(&["reload"]));
            let mut message = next_message(&manager);
            while message[0].starts_with("WATCHDOG") {
                message = next_message(&manager);
            }
            assert_eq!(message[0], "RELOADING=1");
            let micros = message[1].strip_prefix("MONOTONIC_USEC=").expect("a time").parse::<u64>();
            assert!(micros.expect("a number") > 0);
            assert_eq!(next_message(&manager), ["READY=1"]);
            asked.join().expect("reloads")
        });
        assert_eq!(reload, "reloaded\n");
        // SIGTERM, as a service manager sends it.
        let pid = gateway.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
        let mut message = next_message(&manager);
        while message[0].starts_with("WATCHDOG") {
            message = next_message(&manager);
        }
        assert_eq!(message, ["STOPPING=1"]);
        assert!(gateway.wait_with_output().expect("ends").status.success());
        assert_eq!(router.tables(), "");
    }
    // The watchdog of another process is not answered.
    let path = router.folder.join("other.sock");
    let manager = UnixDatagram::bind(&path).expect("binds");
    manager.set_read_timeout(Some(Duration::from_millis(700))).expect("sets");
    let mut command = router.command(&["run", "g.toml", "--runtime", "run"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000").env("WATCHDOG_PID", "1");
    let mut gateway = router.start(&mut command);
    router.ready();
    assert_eq!(next_message(&manager), ["READY=1"]);
    assert!(manager.recv(&mut [0; 64]).is_err());
    router.good(&["stop"]);
    gateway.wait().expect("ends");
}

#[test]
fn captures_are_new_files_for_their_owner_alone() {
    let Some(router) = Router::new("capture", "") else { return };
    router.bad(&["capture", "--pcap", "a.pcapng"], "no gateway called \"gateway\" runs");
    assert!(!router.folder.join("a.pcapng").exists(), "nothing came");
    let mut gateway = router.start(&mut router.command(&["run", "g.toml", "--runtime", "run"]));
    router.ready();
    router.bad(&["capture"], "name a file with --pcap, --qlog or both");
    router.bad(&["capture", "--qlog", "a.sqlog", "--payload"], "--payload is for packets");
    router.bad(
        &["capture", "--pcap", "a.pcapng", "--client", "nobody"],
        "--client: \"nobody\" is no end: write",
    );
    router.bad(
        &["capture", "--pcap", "a.pcapng", "--flow", "9"],
        "there is no connection 9: `skyhaul gateway status --flows`",
    );
    assert!(!router.folder.join("a.pcapng").exists(), "nothing came");
    let output = router.good(&["trace", "--pcap", "a.pcapng", "--qlog", "a.sqlog", "--time", "200 ms"]);
    assert_eq!(output, "0 packets, 0 events, 0 lost because they came too fast; a limit was reached\n");
    for name in ["a.pcapng", "a.sqlog"] {
        let found = fs::metadata(router.folder.join(name)).expect("is there");
        assert_eq!((found.permissions().mode() & 0o777, found.len() > 0), (0o600, true), "{name}");
    }
    // An existing file is kept, and no other file is created.
    let before = fs::read(router.folder.join("a.sqlog")).expect("is there");
    router.bad(
        &["capture", "--pcap", "b.pcapng", "--qlog", "a.sqlog"],
        "a.sqlog exists already: name another file",
    );
    assert_eq!(fs::read(router.folder.join("a.sqlog")).expect("is there"), before);
    assert!(!router.folder.join("b.pcapng").exists());
    // Ctrl-C and the end of the gateway both end a capture in order.
    for ends in ["ended by you", "the gateway has ended"] {
        let file = if ends == "ended by you" { "c.pcapng" } else { "d.pcapng" };
        let mut command = router.command(&["capture", "--pcap", file, "--runtime", "run"]);
        let capture = router.start(&mut command);
        std::thread::sleep(Duration::from_millis(500));
        if ends == "ended by you" {
            let pid = capture.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
        } else {
            router.good(&["stop"]);
        }
        let out = capture.wait_with_output().expect("ends");
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success() && stderr.contains(ends), "{stderr}");
        assert!(fs::metadata(router.folder.join(file)).expect("is there").len() > 0);
    }
    gateway.wait().expect("ends");
}

#[test]
fn what_a_killed_gateway_leaves_behind_is_cleaned() {
    let Some(router) = Router::new("clean", "") else { return };
    let text = fs::read_to_string(router.folder.join("g.toml")).expect("is there");
    fs::write(router.folder.join("g.toml"), format!("on-failure = \"block\"\n{text}")).expect("writes");
    assert_eq!(router.good(&["clean"]), "gateway gateway: has left nothing behind\n");
    let mut gateway = router.start(&mut router.command(&["run", "g.toml", "--runtime", "run"]));
    router.ready();
    router.bad(&["clean"], "runs already (process ");
    gateway.kill().expect("is ours");
    gateway.wait().expect("ends");
    assert!(router.tables().contains("skyhaul_gateway"));
    assert_eq!(
        router.good(&["clean", "--keep-block"]),
        "gateway gateway: connections stay blocked, as its file says\n"
    );
    assert!(router.good(&["clean"]).contains("removed what it had left behind, and restored the settings"));
    assert_eq!(router.tables(), "");
}

#[test]
fn the_doctor_watches_and_proves() {
    let Some(router) = Router::new("doctor", "") else { return };
    // Nobody is there: each option has its own finding, and the status says that something is wrong.
    let out = router.run(&["doctor", "g.toml", "--watch", "100 ms", "--probe", "10.9.0.7:80", "--json"]);
    let stdout = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(1), "{stdout}");
    let all: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let of = |what: &str| {
        let found = all
            .as_array()
            .expect("a list")
            .iter()
            .find(|f| f["what"].as_str().is_some_and(|w| w.starts_with(what)));
        found.unwrap_or_else(|| panic!("{what}: {stdout}"))["says"].as_str().expect("words").to_owned()
    };
    assert!(of("SYNs at lan0").contains("the hosts send nothing through this machine"));
    assert!(of("connection to 10.9.0.7:80").contains("name the address of one with --from"));
    assert_eq!(router.tables(), "");
}

#[test]
fn the_doctor_names_missing_programs_and_modules() {
    let Some(router) = Router::new("lacks", "") else { return };
    let fake = router.folder.join("programs");
    fs::create_dir_all(&fake).expect("a folder");
    let findings = |path: &Path| -> Vec<(String, bool, String)> {
        let mut command = router.command(&["doctor", "g.toml", "--json"]);
        let out = router.start(command.env("PATH", path)).wait_with_output().expect("ends");
        assert_eq!(out.status.code(), Some(1));
        let all: Vec<serde_json::Value> = serde_json::from_slice(&out.stdout).expect("JSON");
        let text = |f: &serde_json::Value, key: &str| f[key].as_str().expect("words").to_owned();
        all.iter().map(|f| (text(f, "what"), f["ok"] == true, text(f, "says"))).collect()
    };
    let of = |all: &[(String, bool, String)], what: &str| {
        all.iter().find(|f| f.0.starts_with(what)).unwrap_or_else(|| panic!("{what}: {all:?}")).clone()
    };
    let all = findings(&fake);
    let (_, ok, says) = of(&all, "nft");
    assert!(!ok && says.contains("apt-get install nftables"), "{says}");
    // As nft says it where the kernel has no module for one kind of rule.
    let path = fake.join("nft");
    let script = "#!/bin/sh\nwhile read -r line; do case \"$line\" in *tproxy*) echo '/dev/stdin:3:1-99: Error: Could not process rule: \
                  No such file or directory' >&2; exit 1;; esac; done\nexit 0\n";
    fs::write(&path, script).expect("writes");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("sets");
    let all = findings(&fake);
    let (_, ok, says) = of(&all, "tproxy (module nft_tproxy)");
    assert!(!ok && says.contains("modprobe nft_tproxy"), "{says}");
    assert!(of(&all, "socket (module nft_socket)").1 && of(&all, "fib (module nft_fib_inet)").1);
}

#[test]
fn notes_that_nobody_reads_stop_no_gateway() {
    let Some(router) = Router::new("unread", "") else { return };
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut command = router.command(&["run", "g.toml", "--runtime", "run"]);
    command.stderr(writer.try_clone().expect("another end"));
    // Another writer keeps the pipe full.
    let filler =
        std::thread::spawn(move || while std::io::Write::write_all(&mut writer, &[b'.'; 512]).is_ok() {});
    let mut child = router.start(&mut command);
    drop(command);
    router.ready();
    // Each flush makes a note.
    for n in 1..4 {
        let flush = || Command::new("nft").args(["flush", "ruleset"]).status().is_ok_and(|s| s.success());
        assert!(router.space.within(flush).expect("enters"));
        let restored = format!("restored {}", if n == 1 { "once".into() } else { format!("{n} times") });
        let mut page = String::new();
        for _ in 0..3000 {
            page = router.good(&["status"]);
            if page.contains(&restored) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(page.contains(&restored), "{page}");
    }
    assert_eq!(router.good(&["stop"]), "stopped\n");
    assert_eq!(child.wait().expect("ends").code(), Some(0));
    drop(reader);
    filler.join().expect("ends");
}

#[test]
fn the_connections_of_several_gateways_are_listed() {
    let Some(router) = Router::new("several", "") else { return };
    // A network namespace has one gateway; both share a folder.
    let Some(beside) = Router::new("several-beside", "") else { return };
    let text = "name = \"forwarder\"\n[satellite]\ninterface = \"sat0\"\n\
                [[forward]]\nlisten = \"127.0.0.1:8080\"\nto = \"10.9.0.7:80\"\n";
    fs::write(router.folder.join("f.toml"), text).expect("writes");
    let mut gateways = [(&beside, "g.toml"), (&router, "f.toml")]
        .map(|(of, file)| of.start(&mut router.command(&["run", file, "--runtime", "run"])));
    // The server does not exist, so that the connection stays open until its SYN times out.
    let (mut client, mut page) = (None, String::new());
    for _ in 0..1000 {
        let connect = || TcpStream::connect("127.0.0.1:8080").ok();
        client = client.or_else(|| router.space.within(connect).expect("enters"));
        page = String::from_utf8_lossy(&router.run(&["status", "--flows"]).stdout).into_owned();
        if page.contains("10.9.0.7:80") && page.contains("\ngateway (skyhaul ") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // A row of the table and a page for each gateway; the table has a column "gateway".
    let starts = |with: &str| page.lines().filter(|l| l.starts_with(with)).count();
    assert_eq!((starts("forwarder "), starts("gateway ")), (2, 3), "{page}");
    let end = client.expect("connects").local_addr().expect("an address").to_string();
    assert!(page.lines().any(|l| l.contains(&end) && l.contains("10.9.0.7:80")), "{page}");
    let all: serde_json::Value =
        serde_json::from_str(&router.good(&["status", "--flows", "--json"])).expect("JSON");
    let listed = |n: usize| (all[n]["name"].as_str(), all[n]["list"].as_array().map(Vec::len));
    assert_eq!([listed(0), listed(1)], [(Some("forwarder"), Some(1)), (Some("gateway"), Some(0))]);
    for (name, gateway) in ["gateway", "forwarder"].into_iter().zip(&mut gateways) {
        router.good(&["stop", name]);
        gateway.wait().expect("ends");
    }
}

#[test]
fn the_status_has_an_exit_status() {
    let Some(router) = Router::new("check", "") else { return };
    let mut child = router.start(&mut router.command(&["run", "g.toml", "--runtime", "run"]));
    router.ready();
    let becomes = |code: i32, part: &str| {
        let mut out = None;
        for _ in 0..500 {
            let done = router.run(&["status", "--check"]);
            if done.status.code() == Some(code) {
                let page = String::from_utf8_lossy(&done.stdout).into_owned();
                assert!(page.contains(part), "{page}");
                return;
            }
            out = Some(done);
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{out:?}");
    };
    becomes(0, "splits new connections");
    // `top` clears the screen before each page, until Ctrl-C.
    let top = router.start(&mut router.command(&["top", "--runtime", "run"]));
    std::thread::sleep(Duration::from_millis(500));
    let pid = top.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let out = top.wait_with_output().expect("ends");
    let page = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && page.starts_with("\x1b[H\x1b[2Jgateway (skyhaul "), "{page:?}");
    let nft = |rule: &str| {
        let run = || Command::new("nft").arg(rule).status().is_ok_and(|s| s.success());
        assert!(router.space.within(run).expect("enters"), "{rule}");
    };
    nft(
        "add table inet filter; add chain inet filter input { type filter hook input priority filter; policy drop; }",
    );
    let remedy = "nft insert rule inet filter input meta mark 0x53480001 accept";
    becomes(
        1,
        &format!(
            "DOUBTFUL, connections of hosts may not reach the gateway: its own connection gets no answer: chain inet filter input drops what its rules do not accept: {remedy}"
        ),
    );
    nft(remedy.strip_prefix("nft ").expect("a command"));
    becomes(0, "splits new connections");
    // The kernel reports changes of interfaces: the status and the doctor name the cause.
    let ip = |line: &str| {
        let run = || Command::new("ip").args(line.split(' ')).status().is_ok_and(|s| s.success());
        assert!(router.space.within(run).expect("enters"), "{line}");
    };
    ip("link set sat0 down");
    let cause = "sat0 is down: ip link set sat0 up";
    becomes(1, cause);
    let doctor = router.run(&["doctor", "g.toml"]);
    let stdout = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        doctor.status.code() == Some(1)
            && stdout.contains("forwards new connections unsplit for ")
            && stdout.contains(cause),
        "{stdout}"
    );
    ip("link set sat0 up");
    becomes(0, concat!("(skyhaul ", env!("CARGO_PKG_VERSION"), "): up "));
    assert_eq!(router.good(&["stop"]), "stopped\n");
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

#[test]
fn a_terminal_of_a_template_serves_the_metrics_of_its_file() {
    let Some(router) = Router::new("template", "") else { return };
    let write = |name: &str, text: &str| fs::write(router.folder.join(name), text).expect("writes");
    let terminal = "include = [\"g.toml\"]\nname = \"t-${n}\"\n[variables]\nn = 7\nspare = \"x\"\n[metrics]\nlisten = \"10.1.0.1:0\"\nprefix-v4 = 16\n";
    write("t7.toml", terminal);
    let check = router.start(&mut router.command(&["check", "t7.toml"])).wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    for part in [
        "t-7, table inet skyhaul_t_7",
        "g.toml\n",
        "n = 7 (t7.toml)",
        "spare = \"x\" (t7.toml; nothing uses it)",
        "at http://10.1.0.1:0/metrics; by network behind the link (/16, IPv6 /48), 256 at most",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let doctor = String::from_utf8_lossy(&router.run(&["doctor", "t7.toml"]).stdout).into_owned();
    assert!(doctor.contains("metrics.listen 10.1.0.1:0"), "{doctor}");
    let mut command = router.command(&["run", "t7.toml", "--runtime", "run"]);
    let mut gateway = router.start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    router.ready();
    let status = router.good(&["status"]);
    let at = status.split("http://").nth(1).and_then(|s| s.split("/metrics").next()).expect("an address");
    let page = router
        .space
        .within(|| {
            let mut page = TcpStream::connect(at).expect("connects");
            page.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("asks");
            let mut text = String::new();
            page.read_to_string(&mut text).expect("answers");
            text
        })
        .expect("enters");
    for part in
        ["skyhaul_gateway_uptime_seconds{gateway=\"t-7\"}", "skyhaul_gateway_info{gateway=\"t-7\",version="]
    {
        assert!(page.contains(part), "{page}");
    }
    // Another one that wants the same port is refused, by the file that says so, and leaves nothing behind.
    write("u.toml", &terminal.replace("10.1.0.1:0", at).replace("n = 7", "n = 8"));
    router.bad(&["run", "u.toml"], &format!("u.toml: metrics.listen: cannot listen at {at}: "));
    assert_eq!(router.tables().trim(), "table inet skyhaul_t_7");
    let doctor = String::from_utf8_lossy(&router.run(&["doctor", "u.toml"]).stdout).into_owned();
    assert!(
        doctor.contains(&format!("metrics.listen {at}")) && doctor.contains("cannot listen there: "),
        "{doctor}"
    );
    // A reload reads the template, too.
    let template = fs::read_to_string(router.folder.join("g.toml")).expect("reads");
    write("g.toml", &template.replace("[limits]", "mtu = 1400\n[limits]"));
    router.bad(&["reload"], "g.toml: satellite.mtu: it cannot change while the gateway runs");
    write("g.toml", &template.replace("drain", "nonsense = 1\ndrain"));
    router.bad(&["reload"], "g.toml: limits.nonsense: unknown field");
    write("g.toml", &template);
    write("t7.toml", &terminal.replace("n = 7", ""));
    router.bad(&["reload"], "t7.toml: name: ${n} has no value: write n = … under [variables]");
    write("t7.toml", terminal);
    router.good(&["reload"]);
    router.good(&["stop"]);
    assert!(gateway.wait().expect("ends").success());
    assert!(router.tables().is_empty());
}
