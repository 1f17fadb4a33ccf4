//! Programs in enclosures, with the kernel: their status, what they see, and that nothing survives us.
//!
//! This file has a `main` of its own because it starts itself once more, as those programs do that use enclosures.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::{Namespace, NetError, enclosure};
use skyhaul_testkit::need;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

fn main() {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let status = match args.first().and_then(|a| a.to_str()) {
        Some("enclosure-init") => enclosure::init(&args[1..]),
        Some("enclosure-holder") => hold(&args[1..]),
        // What test runners ask of programs that they list.
        Some("--list") => 0,
        _ => tests(),
    };
    std::process::exit(status.into());
}

/// Runs a program in an enclosure, with a device in its namespace and one in ours, and returns its status.
fn hold(program: &[OsString]) -> u8 {
    let inner = Namespace::new().expect("granted to the test");
    let config =
        |name: &str| TunConfig { name: Some(name.into()), addresses: vec![], mtu: 1500, offload: false };
    let _ours = Tun::open(&config("outer0")).expect("a device");
    let _theirs = inner.within(|| Tun::open(&config("inner0"))).expect("enters").expect("a device");
    let ourselves = std::env::var_os("OURSELVES");
    let ourselves = ourselves.unwrap_or_else(|| std::env::current_exe().expect("there").into());
    let again = [ourselves, "enclosure-init".into()];
    let enclosed = match enclosure::start(&inner, &again, program) {
        Ok(enclosed) => enclosed,
        Err(NetError::NotStarted { status, .. }) => {
            println!("not started");
            return status;
        }
        Err(e) => panic!("{e}"),
    };
    // A test asks for a signal or an end by these words.
    if std::env::var_os("FORWARD").is_some() {
        let mut word = String::new();
        std::io::stdin().read_line(&mut word).expect("a word");
        enclosed.signal(Signal::SIGTERM);
    }
    enclosed.wait().expect("ends")
}

fn holder(program: &[&str]) -> Command {
    let mut c = Command::new(std::env::current_exe().expect("there"));
    c.arg("enclosure-holder")
        .args(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    c
}

fn started(outer: &Namespace, mut command: Command) -> Child {
    outer.within(|| command.spawn().expect("starts")).expect("enters")
}

/// Status, standard output, standard error.
fn ran(outer: &Namespace, program: &[&str]) -> (Option<i32>, String, String) {
    let out = started(outer, holder(program)).wait_with_output().expect("ends");
    let text = |b: Vec<u8>| String::from_utf8(b).expect("UTF-8");
    (out.status.code(), text(out.stdout), text(out.stderr))
}

type Test = fn(&Namespace);

fn tests() -> u8 {
    need::test("all");
    let Some(outer) = need::granted(Namespace::new()) else { return 0 };
    let all: [(&str, Test); 5] = [
        ("the_status_is_that_of_the_program", the_status_is_that_of_the_program),
        ("a_program_sees_its_own_processes_and_interfaces", a_program_sees_its_own_processes_and_interfaces),
        ("signals_reach_the_program", signals_reach_the_program),
        ("daemons_end_with_the_program", daemons_end_with_the_program),
        ("nothing_survives_a_killed_parent", nothing_survives_a_killed_parent),
    ];
    for (name, test) in all {
        test(&outer);
        println!("test {name} ... ok");
    }
    0
}

fn the_status_is_that_of_the_program(outer: &Namespace) {
    assert_eq!(ran(outer, &["sh", "-c", "echo hello; exit 7"]), (Some(7), "hello\n".into(), String::new()));
    assert_eq!(ran(outer, &["sh", "-c", "kill -KILL $$"]).0, Some(137));
    // Programs may end with these statuses themselves.
    assert_eq!(ran(outer, &["sh", "-c", "exit 127"]), (Some(127), String::new(), String::new()));
    for (program, status, why) in
        [("/no/such/program", 127, "no such program"), ("/etc/passwd", 126, "Permission denied")]
    {
        let line = format!("skyhaul: cannot start {program}: {why}\n");
        assert_eq!(ran(outer, &[program]), (Some(status), "not started\n".into(), line));
    }
    // What was to start the program ends before it does.
    let mut command = holder(&["true"]);
    command.env("OURSELVES", "false");
    let out = started(outer, command).wait_with_output().expect("ends");
    assert_eq!((out.status.code(), out.stdout.as_slice()), (Some(1), &b"not started\n"[..]));
}

fn a_program_sees_its_own_processes_and_interfaces(outer: &Namespace) {
    let script = "ls /proc | grep -c '^[0-9]*$'; ls /sys/class/net; cut -d: -f1 /proc/net/dev | tail -n +3";
    let (status, out, err) = ran(outer, &["sh", "-c", script]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let mut lines = out.lines().map(str::trim);
    // The first process, the shell, ls, grep; not the hundred of the machine.
    let processes: u32 = lines.next().expect("a number").parse().expect("a number");
    assert!((2..=4).contains(&processes), "{processes} processes");
    let mut names: Vec<&str> = lines.collect();
    names.sort_unstable();
    assert!(names.contains(&"inner0") && !names.contains(&"outer0"), "{names:?}");
}

fn signals_reach_the_program(outer: &Namespace) {
    let script = "trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut command = holder(&["sh", "-c", script]);
    command.env("FORWARD", "1");
    let mut child = started(outer, command);
    let mut out = lines(&mut child);
    assert_eq!(next(&mut out), "ready");
    drop(child.stdin.take());
    assert_eq!(next(&mut out), "got it");
    assert_eq!(child.wait().expect("ends").code(), Some(9));
    // One that does nothing about signals, not even take a block off.
    let mut command = holder(&["sh", "-c", "echo ready; exec sleep 100"]);
    command.env("FORWARD", "1");
    let mut child = started(outer, command);
    assert_eq!(next(&mut lines(&mut child)), "ready");
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("ends").code(), Some(143));
}

fn daemons_end_with_the_program(outer: &Namespace) {
    let mark = mark(1);
    let script = format!("setsid sleep {mark} >/dev/null 2>&1 & exit 3");
    assert_eq!(ran(outer, &["sh", "-c", &script]).0, Some(3));
    assert!(vanished(|| with_argument(&mark).is_empty()), "{:?} stayed", with_argument(&mark));
}

fn nothing_survives_a_killed_parent(outer: &Namespace) {
    let mark = mark(2);
    // One child, and one that has left session, group and parent behind.
    let script = format!(
        "sleep {mark} & (setsid sleep {mark} >/dev/null 2>&1 &); stat -L -c %i /proc/self/ns/net; wait"
    );
    let mut child = started(outer, holder(&["sh", "-c", &script]));
    let mut out = lines(&mut child);
    let inner: u64 = next(&mut out).parse().expect("the number of the namespace");
    assert!(vanished(|| with_argument(&format!("^{mark}")).len() == 2), "both run before the test");
    assert!(!in_namespace(inner).is_empty(), "the namespace is in use before the test");
    assert!(has(outer, "outer0"), "the device is there before the test");

    kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).expect("ours");
    let status = child.wait().expect("ends");
    assert_eq!(status.code(), None, "it was killed: {status}");
    assert!(vanished(|| with_argument(&mark).is_empty()), "{:?} stayed", with_argument(&mark));
    assert!(vanished(|| in_namespace(inner).is_empty()), "{:?} stayed", in_namespace(inner));
    assert!(vanished(|| !has(outer, "outer0")), "the device stayed");
    // All that held the pipe have ended.
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("the end");
}

fn lines(child: &mut Child) -> BufReader<ChildStdout> {
    BufReader::new(child.stdout.take().expect("piped"))
}

fn next(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    line.trim().to_owned()
}

/// A number of seconds that nobody else sleeps.
fn mark(test: u32) -> String {
    format!("{}{}", 9_000 + test, std::process::id())
}

fn has(ns: &Namespace, interface: &str) -> bool {
    ns.within(|| nix::net::if_::if_nametoindex(interface).is_ok()).expect("enters")
}

/// Waits for what happens soon but not at once; gives up after long.
fn vanished(done: impl Fn() -> bool) -> bool {
    for _ in 0..1_000 {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    done()
}

fn processes() -> Vec<u32> {
    let all = std::fs::read_dir("/proc").expect("mounted").flatten();
    all.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// Processes that have `mark` in an argument; as a whole argument if it begins with a caret.
fn with_argument(mark: &str) -> Vec<u32> {
    let (whole, mark) = mark.strip_prefix('^').map_or((false, mark), |m| (true, m));
    let hit = |p: &u32| {
        let line = std::fs::read(format!("/proc/{p}/cmdline")).unwrap_or_default();
        let mut words = line.split(|b| *b == 0).map(String::from_utf8_lossy);
        words.any(|w| if whole { w == mark } else { w.contains(mark) })
    };
    processes().into_iter().filter(hit).collect()
}

/// Processes in a network namespace.
fn in_namespace(inode: u64) -> Vec<u32> {
    let inside = |p: &u32| std::fs::metadata(format!("/proc/{p}/ns/net")).is_ok_and(|m| m.ino() == inode);
    processes().into_iter().filter(inside).collect()
}
