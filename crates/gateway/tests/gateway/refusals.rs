//! Reasons for which a gateway does not start. Each is reported in one line with the remedy, and nothing is left behind.

use crate::bed::{self, Bed, FAR, NEAR};
use crate::calm;
use skyhaul_gateway::{Config, doctor};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const ALL: [(&str, fn()); 1] =
    [("what_is_missing_is_said_in_one_line", what_is_missing_is_said_in_one_line)];

/// The state of a router: tables, rules of routing, routes, interfaces and settings; and the files in the gateway's folder.
fn state(bed: &Bed, at: usize) -> (String, Vec<PathBuf>) {
    let list = || {
        let line = "nft list ruleset; ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; ip -o link | \
                    cut -d: -f2; cat /proc/sys/net/ipv4/tcp_early_demux /proc/sys/net/ipv4/tcp_reflect_tos";
        let out = Command::new("sh").args(["-c", line]).output().expect("runs");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let files = std::fs::read_dir(&bed.folder).expect("is there").map(|f| f.expect("an entry").path());
    let files = files.filter(|p| p.extension().is_some_and(|e| e != "toml"));
    (bed.spaces[at].within(list).expect("enters"), files.filter(|p| p.is_file()).collect())
}

/// Runs a gateway with this file in a router until it ends by itself. `starter` is a command that runs it, `path` the variable `PATH`.
fn attempt(bed: &Bed, at: usize, starter: &[&str], path: Option<&Path>, text: &str) -> Output {
    let file = bed.folder.join("near.toml");
    std::fs::write(&file, format!("name = \"near\"\n{text}")).expect("writes");
    let ourselves = std::env::current_exe().expect("there");
    let (program, args) = match starter.split_first() {
        Some((program, args)) => {
            (PathBuf::from(program), [args, &[ourselves.to_str().expect("a path")]].concat())
        }
        None => (ourselves, Vec::new()),
    };
    let mut command = Command::new(program);
    command.args(args).arg("gateway-run").arg(&file).arg(&bed.folder);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    bed.spaces[at].within(|| command.output().expect("starts")).expect("enters")
}

fn what_is_missing_is_said_in_one_line() {
    let Some(bed) = Bed::new("refusals", calm()) else { return };
    let good = "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n";
    let before = state(&bed, NEAR);
    let fails = |what: &str, output: Output, part: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(part) && said.trim().lines().count() == 1, "{what}: {said}");
        assert!(!output.status.success(), "{what}");
        assert_eq!(state(&bed, NEAR), before, "{what} leaves nothing behind");
    };
    let folder = |name: &str| {
        let folder = bed.folder.join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    };
    // Puts a program in the place of `nft`.
    let program = |folder: &Path, text: &str| {
        let path = folder.join("nft");
        std::fs::write(&path, text).expect("writes");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("sets");
    };
    fails("no nft", attempt(&bed, NEAR, &[], Some(&folder("empty")), good), "apt-get install nftables");
    let lacking = folder("lacking");
    program(
        &lacking,
        "#!/bin/sh\nread -r first\ncase \"$first\" in add*) exit 0;; esac\n\
        echo '/dev/stdin:8:1-99: Error: Could not process rule: No such file or directory' >&2\nexit 1\n",
    );
    fails("no module", attempt(&bed, NEAR, &[], Some(&lacking), good), "modprobe nft_tproxy");
    fails(
        "no interface",
        attempt(&bed, NEAR, &[], None, &good.replace("lan0", "lan7")),
        "no interface \"lan7\"; `ip link` lists",
    );
    let overlap = format!("{good}[split]\nexclude = [\"10.0.0.0/8\", \"10.1.0.0/16\"]\n");
    fails(
        "overlap",
        attempt(&bed, NEAR, &[], None, &overlap),
        "10.0.0.0/8 contains 10.1.0.0/16: leave one of them out",
    );
    let nowhere = format!("{good}[log]\nflows = \"/no/such/folder/flows.jsonl\"\n");
    fails(
        "no folder for the log",
        attempt(&bed, NEAR, &[], None, &nowhere),
        "cannot open /no/such/folder/flows.jsonl, as log.flows says",
    );
    if Command::new("setpriv").arg("--version").output().is_ok() {
        let none = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs"];
        fails("no privileges", attempt(&bed, NEAR, &none, None, good), "without CAP_NET_ADMIN: run it");
    }
    let off = bed.spaces[NEAR].sysctl("net/ipv4/ip_forward", "0");
    off.expect("sets");
    let refused = attempt(&bed, NEAR, &[], None, good);
    bed.spaces[NEAR].sysctl("net/ipv4/ip_forward", "1").expect("sets");
    fails("no forwarding", refused, "IPv4 forwarding is off: sysctl -w net.ipv4.ip_forward=1");
    // Another gateway in this namespace, of another name, has the link already.
    let first = bed.gateway_for(NEAR, good);
    let running = state(&bed, NEAR);
    let other = bed.folder.join("other.toml");
    let refused = |text: &str, folder: &Path| {
        std::fs::write(&other, format!("name = \"other\"\n{text}")).expect("writes");
        let run = || {
            let config = Config::read(&other).expect("is good");
            skyhaul_gateway::run(&config, &bed::environment(&other, folder), &mut bed::Ready).map(|_| ())
        };
        bed.spaces[NEAR].within(run).expect("enters").expect_err("is refused").to_string()
    };
    let remedy =
        "of the gateway \"near\": write another interface, or stop that gateway (skyhaul gateway stop near)";
    assert_eq!(
        refused(good, &bed.folder),
        format!("satellite.interface sat0 is satellite.interface {remedy}")
    );
    let turned = good.replace("lan0", "x").replace("sat0", "lan0").replace('x', "sat0");
    assert_eq!(
        refused(&turned, &bed.folder),
        format!("satellite.interface lan0 is an interface of hosts {remedy}")
    );
    // With another folder, it does not know of the first one.
    let elsewhere = bed.folder.join("elsewhere");
    assert!(
        refused(good, &elsewhere)
            .starts_with("routing table 21321 is in use: by a gateway of this network namespace")
    );
    std::fs::remove_dir(&elsewhere).expect("nothing is left in it");
    assert_eq!(state(&bed, NEAR), running);
    first.stop();
    assert_eq!(state(&bed, NEAR), before);
    // A gateway in another namespace, with the same folder and name, has the lock already.
    let first = bed.gateway_for(NEAR, good);
    let e = attempt(&bed, FAR, &[], None, good);
    let said = String::from_utf8_lossy(&e.stderr).into_owned();
    assert!(said.contains("runs already (process ") && said.trim().lines().count() == 1, "{said}");
    // It ends in order, so that no keeper still cleans up after it.
    first.stop();
    // The doctor changes nothing either.
    let before = state(&bed, FAR);
    let config = Config::parse("g.toml", good).expect("is good");
    bed.spaces[FAR].within(|| doctor::examine(&config, &bed.folder)).expect("enters");
    assert_eq!(state(&bed, FAR), before);
}
