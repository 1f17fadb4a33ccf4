use super::*;

const LEAST: &str = "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n";

#[test]
fn a_file_of_four_lines_is_enough() {
    let c = Config::parse("g.toml", LEAST).unwrap();
    assert_eq!((c.name.as_str(), c.interface().as_str()), ("gateway", "sky-gateway"));
    assert_eq!((c.limits.flows, &c.split.exclude_ports[..], c.satellite.rate), (20_000, &[179][..], None));
    assert_eq!(c.terrestrial.as_ref().unwrap().networks.len(), 2);
}

#[test]
fn keepalives_outlast_the_outage_that_is_allowed() {
    let of = |more: &str| {
        let c = Config::parse("g.toml", &format!("{LEAST}{more}")).unwrap();
        c.endpoint.tcp.keepalive
    };
    let k = of("[limits]\nstuck = \"95 s\"\n");
    assert_eq!((k.idle.as_secs_f64(), k.interval.as_secs_f64(), k.probes), (60.0, 10.0, 10));
    assert_eq!(of("endpoint = { keepalive-idle = \"7 s\" }\n").idle, Duration::from_secs(7));
    for idle in ["0 s", "61 s"] {
        let text = format!("{LEAST}endpoint = {{ keepalive-idle = \"{idle}\" }}\n");
        let e = Config::parse("g.toml", &text).unwrap_err().to_string();
        assert!(e.starts_with("g.toml: satellite.endpoint.keepalive-idle: write at most \"60 s\""), "{e}");
    }
}

#[test]
fn any_outage_may_be_allowed() {
    let text = format!(
        "{LEAST}profile = \"geo\"\nrate = \"10 Mbit/s\"\nrtt = \"1 ms\"\n[limits]\nstuck = \"18000000000 s\"\n"
    );
    let c = Config::parse("g.toml", &text).unwrap();
    assert_eq!(c.endpoint.tcp.max_retransmissions, u32::MAX);
}

#[test]
fn ports_are_forwarded_without_hosts() {
    let parse = |more: &str| Config::parse("g.toml", &format!("[satellite]\ninterface = \"sat0\"\n{more}"));
    let forward = "[[forward]]\nlisten = \"[::1]:80\"\nto = \"203.0.113.7:80\"\n";
    let c = parse(forward).unwrap();
    assert!(c.forwards_ports() && c.terrestrial.is_none());
    for (more, expected) in [
        ("", "g.toml: terrestrial: nothing to do: write [terrestrial]"),
        (&forward.repeat(2), "g.toml: forward[1].listen: [::1]:80 is listed twice"),
        (&forward.replace("203.0.113.7:80", "example.org:80"), "is not an IPv4 address with a port: write"),
        (&forward.replace("203.0.113.7:80", "203.0.113.7:0"), "is not an IPv4 address with a port: write"),
        (&forward.replace("[::1]:80", "80"), "is not an address with a port: write"),
        ("[[publish]]\nport = 0\nto = \"127.0.0.1:80\"\n", "publish[0].port: write a port of 1 to 65535"),
    ] {
        let e = parse(more).unwrap_err().to_string();
        assert!(e.contains(expected) && !e.contains('\n'), "{e}");
    }
}

#[test]
fn every_refusal_names_file_and_key() {
    for (text, expected) in [
        ("x = 1", "g.toml: "),
        ("name = \"GW\"", "g.toml: name: write 1 to 11 small letters"),
        (
            "[split]\nexclude = [\"10.0.0.0/33\"]",
            "g.toml: split.exclude[0]: \"10.0.0.0/33\" is no network: write",
        ),
        ("[split]\nexclude = [\"10.1.0.0/8\"]", "has bits beyond its prefix: write \"10.0.0.0/8\""),
        (
            "[split]\nexclude = [\"10.0.0.0/8\", \"10.1.0.0/16\"]",
            "split.exclude: 10.0.0.0/8 contains 10.1.0.0/16",
        ),
        ("[limits]\nbuffer = 5", "g.toml: limits.buffer: "),
        ("[limits]\nflows = 0", "g.toml: limits.flows: "),
        ("[limits]\nflows = 10000001", "g.toml: limits.flows: write a number from 1 to 10000000"),
        (
            "[limits]\nmemory = \"9223372036854775808 B\"",
            "g.toml: limits.memory: more than this program can address: write at most",
        ),
        ("[limits]\nbuffer = \"9223372036854775808 B\"", "g.toml: limits.buffer: more than this program can"),
        ("[limits]\nthreads = 0", "g.toml: limits.threads: write a number from 1 to 64"),
        ("on-failure = \"pray\"", "g.toml: on-failure: unknown variant"),
        ("[log]\nflows = \"flows.jsonl\"", "g.toml: log.flows: \"flows.jsonl\" is no place for lines: write"),
        ("[log]\nlevel = \"loud\"", "g.toml: log.level: unknown variant"),
    ] {
        let text = if text.starts_with('[') { format!("{LEAST}{text}") } else { format!("{text}\n{LEAST}") };
        let e = Config::parse("g.toml", &text).unwrap_err().to_string();
        assert!(e.contains(expected) && !e.contains('\n'), "{e}");
    }
    for (change, expected) in [
        ("cc = \"renoo\"", "satellite.cc"),
        ("rate = \"0 bit/s\"", "satellite.rate: "),
        ("rwnd = 5", "satellite.rwnd: "),
        ("endpoint = { nonsense = 1 }", "satellite.endpoint.nonsense"),
        ("mtu = 5", "satellite.mtu: write at least 576"),
    ] {
        let e = Config::parse("g.toml", &format!("{LEAST}{change}\n")).unwrap_err().to_string();
        assert!(e.contains(expected) && !e.contains('\n'), "{change}: {e}");
    }
    for (text, expected) in [
        ("[evidence]\nmode = \"on\"", "evidence.mode: unknown variant"),
        (
            "[evidence]\nmode = \"ab\"\nfraction = 1.0",
            "evidence.fraction: write a share between 0.001 and 0.999",
        ),
        ("[evidence]\nmode = \"ab\"\nfraction = nan", "evidence.fraction: write a share"),
        ("[evidence]\nprefix-v4 = 33", "evidence.prefix-v4: write 0 to 32"),
        ("[evidence]\nprefix-v6 = 129", "evidence.prefix-v6: write 0 to 128"),
        ("[evidence]\nconnections = 0", "evidence.connections: write 1 to 1000000"),
        ("[evidence]\nprefixes = 100000", "evidence.prefixes: write 1 to 65536"),
        ("[evidence.other]\ncc = \"bbr\"", "evidence.other: a second arm needs mode = \"ab\""),
        ("[evidence]\nmode = \"ab\"\n[evidence.other]\ncc = \"bbbr\"", "evidence.other.cc: "),
        (
            "[evidence]\nmode = \"ab\"\n[evidence.other]\nrate = \"1 Mbit/s\"",
            "evidence.other.rate: unknown field",
        ),
        (
            "[metrics]\nlisten = \"9101\"",
            "metrics.listen: \"9101\" is not an address with a port: write \"127.0.0.1:9101\"",
        ),
        ("[metrics]\nprefix-v4 = 33", "metrics.prefix-v4: write 0 to 32, in bits"),
        ("[metrics]\nprefix-v6 = 129", "metrics.prefix-v6: write 0 to 128, in bits"),
        ("[metrics]\nprefixes = 0", "metrics.prefixes: write 1 to 4096"),
        ("[log]\nrotate = \"1 MB\"", "log.rotate: no log goes to a file: write log.flows or log.events"),
        ("[log]\nflows = \"stderr\"\nrotate = \"1 MB\"", "log.rotate: no log goes to a file"),
        ("[log]\nflows = \"/a\"\nrotate = \"10 kB\"", "log.rotate: write at least \"64 kB\""),
        ("[log]\nflows = \"/a\"\nkeep = 3", "log.keep: it counts files that log.rotate makes"),
        ("[log]\nflows = \"/a\"\nrotate = \"1 MB\"\nkeep = 1000", "log.keep: write 0 to 999"),
        ("[log]\nflows = \"unix:a\"", "log.flows: \"unix:a\" is no place for lines: write"),
        ("[log]\ninterval = \"60 s\"", "log.interval: it is for lines about connections: write log.flows"),
        ("[log]\nflows = \"/a\"\ninterval = \"1 s\"", "log.interval: write at least \"10 s\""),
        (
            "[log]\nflows = \"/a\"\ninterval = \"60 s\"\nlevel = \"warning\"",
            "log.interval: log.level leaves these lines out",
        ),
        ("[log]\nflows = \"udp:127.0.0.1:1\"\nrotate = \"1 MB\"", "log.rotate: no log goes to a file"),
        ("[priority-test]\nport = 0", "priority-test.port: write a port of 1 to 65535"),
        ("[priority-test]\ninterval = \"1 s\"", "priority-test.interval: write at least \"10 s\""),
        ("[priority-test]\npackets = 3", "priority-test.packets: write 200 to 20000"),
        ("[priority-test]\npeers = [\"a.b\"]", "priority-test.peers[0]: invalid IP address syntax"),
    ] {
        let e = Config::parse("g.toml", &format!("{LEAST}{text}\n")).unwrap_err().to_string();
        assert!(e.starts_with(&format!("g.toml: {expected}")) && !e.contains('\n'), "{text}: {e}");
    }
    for (change, expected) in [
        ("fallback-cc = \"renoo\"\n", "satellite.fallback-cc"),
        ("fallback-cc = \"peach\"\n", "satellite.fallback-cc: it sends probes"),
        ("rate = \"9 Mbit/s\"\n[limits]\nthreads = 2\n", "limits.threads: one thread paces"),
    ] {
        let e = Config::parse("g.toml", &format!("{LEAST}{change}")).unwrap_err().to_string();
        assert!(e.contains(expected) && !e.contains('\n'), "{change}: {e}");
    }
    let address = LEAST.replace("[satellite]", "preserve = \"address\"\n[satellite]");
    let e =
        Config::parse("g.toml", &format!("{address}[evidence]\nmode = \"ab\"\n")).unwrap_err().to_string();
    assert!(e.starts_with("g.toml: terrestrial.preserve: it must be \"full\""), "{e}");
    for (hosts, expected) in [
        (
            "interfaces = [\"lan0\", \"lan1\", \"lan0\"]",
            "terrestrial.interfaces[2]: lan0 is listed twice: leave one of them out",
        ),
        (
            "interfaces = [\"lan1\", \"sat0\"]",
            "satellite.interface: it is also terrestrial.interfaces[1]: write the interface",
        ),
        (
            "interfaces = []",
            "terrestrial.interfaces: write the interfaces of the hosts: interface = \"lan0\", or",
        ),
        ("", "terrestrial.interfaces: write the interfaces of the hosts"),
        (
            "interfaces = [\"lan1\"]\ninterface = \"lan0\"",
            "terrestrial.interface: terrestrial.interfaces has them all",
        ),
        ("interfaces = [\"lan0\", \"la n\"]", "terrestrial.interfaces[1]: this is no name of an interface"),
        ("interfaces = [\"lan0\", 1]", "terrestrial.interfaces[1]: invalid type: integer"),
        ("interfaces = \"lan0\"", "terrestrial.interfaces: invalid type: string"),
        ("interfacse = [\"lan0\"]", "terrestrial.interfacse: unknown field"),
    ] {
        let text = format!("[terrestrial]\n{hosts}\n[satellite]\ninterface = \"sat0\"\n");
        let e = Config::parse("g.toml", &text).unwrap_err().to_string();
        assert!(e.starts_with(&format!("g.toml: {expected}")) && !e.contains('\n'), "{e}");
    }
    let names: Vec<_> = (0..33).map(|n| format!("\"lan{n}\"")).collect();
    let many = LEAST.replace("interface = \"lan0\"", &format!("interfaces = [{}]", names.join(", ")));
    let e = Config::parse("g.toml", &many).unwrap_err().to_string();
    assert_eq!(e, "g.toml: terrestrial.interfaces: write at most 32");
    let several = LEAST.replace("interface = \"lan0\"", "interfaces = [\"eth0.100\", \"eth0.101\"]");
    let c = Config::parse("g.toml", &several).unwrap();
    assert_eq!(c.host_interfaces(), ["eth0.100", "eth0.101"]);
    let measured = format!("{several}[evidence]\nmode = \"shadow\"\n");
    let e = Config::parse("g.toml", &measured).unwrap_err().to_string();
    assert!(
        e.starts_with("g.toml: evidence.mode: connections between two interfaces of hosts would count"),
        "{e}"
    );
    let apart = measured
        .replace("[satellite]", "networks = [\"10.0.0.0/8\"]\n[satellite]\nnetworks = [\"192.0.2.0/24\"]");
    Config::parse("g.toml", &apart).unwrap();
    let one = Config::parse("g.toml", LEAST).unwrap();
    assert_eq!(
        (one.host_interfaces(), one.needs_restart(&c)),
        (&["lan0".to_owned()][..], Some("terrestrial.interfaces"))
    );
    let any = LEAST.replace("sat0", "sat*");
    let e = Config::parse("g.toml", &any).unwrap_err().to_string();
    assert!(e.contains("satellite.interface: this is no name of an interface"), "{e}");
    let same = LEAST.replace("sat0", "lan0");
    let e = Config::parse("g.toml", &same).unwrap_err().to_string();
    assert!(e.contains("it is also terrestrial.interface"), "{e}");
}

#[test]
fn what_the_host_learns_at_its_start_needs_a_restart() {
    let config = |more: &str| Config::parse("g.toml", &format!("{LEAST}{more}\n")).unwrap();
    let needs = |more: &str| config("").needs_restart(&config(more));
    assert_eq!(needs("endpoint = { mtu-search = false }"), Some("satellite.endpoint.mtu-search"));
    assert_eq!(needs("mtu = 1400"), Some("satellite.mtu"));
    assert_eq!(needs("cc = \"cubic\"\nendpoint = { nagle = true }"), None);
}
