//! The same events through a control of this project and through its program for the kernel, compiled for user space from the same
//! file, give the same windows within rounding.

use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, RngAlgorithm, TestRng, TestRunner};
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_cc::alg::{hark, hybla, tcp_real, tibet, westwood_abse, westwood_plus};
use skyhaul_cc::testing::{Stage, ack};
use skyhaul_cc::{
    Ack, AckKind, Algorithm, Blocked, CaGrowth, Clock, Config, CongestionControl as _, HalvingBase,
    InitialSsthresh, InitialWindow, Phase, RateSample, RecoveryMode, Rules, Signal, Start, Transmit,
};
use skyhaul_testkit::need;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MSS: u32 = 1000;

/// The window arithmetic of the kernel: byte counting without a limit, and half of the window.
const KERNEL: Rules = Rules {
    initial_window: InitialWindow::Segments(10.0),
    initial_ssthresh: InitialSsthresh::Infinite,
    halving_base: HalvingBase::Window,
    integer_halving: false,
    growth: CaGrowth::Abc,
    abc_limit: 1e9,
    ..Rules::MODERN
};

/// The control of this project with the options that its program has.
fn ours(name: &str) -> Config {
    // The kernel lowers the window by proportional rate reduction, and its end is that of SACK recovery.
    let recovery = RecoveryMode::Prr;
    match name {
        "gaimd" => Config::Gaimd(skyhaul_cc::alg::gaimd::Config { recovery, ..Default::default() }),
        "hybla" => Config::Hybla(hybla::Config { recovery, ..Default::default() }),
        "tcp-real" => Config::TcpReal(tcp_real::Config { recovery, ..Default::default() }),
        "tibet" => Config::Tibet(tibet::Config { recovery, ..Default::default() }),
        "westwood-abse" => Config::WestwoodAbse(westwood_abse::Config { recovery, ..Default::default() }),
        "westwood-plus" => Config::WestwoodPlus(westwood_plus::Config {
            recovery,
            flavour: westwood_plus::Flavour::Linux,
            ..Default::default()
        }),
        "hark" => Config::Hark(hark::Config { probes: false, ..Default::default() }),
        _ => panic!("no control {name}"),
    }
}

/// What happens next on the path. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many acknowledgements, `gap` apart, of `acked` segments each.
    Acks { count: u32, gap: u64, acked: u32, rtt: u32, limited: bool },
    /// Two duplicates, a loss, and its repair: duplicates, partial acknowledgements of `hole` segments, the end.
    Loss { duplicates: u32, partials: u32, hole: u32, gap: u64, rtt: u32 },
    /// An ECN echo.
    Mark,
    /// Timeouts in a row after this silence.
    Timeouts { count: u32, silence: u64 },
    /// The last reduction was spurious.
    Undo,
    /// The peer's window limits the sender from now on, until the round is over.
    Stalled,
}

fn steps(base_rtt: u32) -> impl Strategy<Value = Vec<Step>> {
    let rtt = || prop_oneof![base_rtt..base_rtt + base_rtt / 3, Just(base_rtt), base_rtt..base_rtt + 4000];
    let acks = (1u32..120, 1u64..9000, 1u32..3, rtt(), prop::bool::weighted(0.9))
        .prop_map(|(count, gap, acked, rtt, limited)| Step::Acks { count, gap, acked, rtt, limited });
    let loss =
        (1u32..30, 0u32..4, 1u32..8, 1u64..9000, rtt()).prop_map(|(duplicates, partials, hole, gap, rtt)| {
            Step::Loss { duplicates, partials, hole, gap, rtt }
        });
    let timeouts =
        (1u32..3, 200_000u64..3_000_000).prop_map(|(count, silence)| Step::Timeouts { count, silence });
    let step = prop_oneof![
        24 => acks,
        5 => loss,
        1 => Just(Step::Mark),
        1 => timeouts,
        1 => Just(Step::Undo),
        1 => Just(Step::Stalled),
    ];
    prop::collection::vec(step, 1..60)
}

/// Both sides of a replay: the control of this project, and the lines for the program.
struct Replay {
    ours: Stage<Algorithm>,
    hark: bool,
    tcp_real: bool,
    /// Whether a mark reduces the window by the same rule as a loss.
    marks: bool,
    /// Microseconds.
    now: u64,
    srtt: u32,
    min_rtt: u32,
    delivered: u32,
    /// Acknowledgements since the last round ended.
    in_round: u32,
    /// Begin of the wave in progress and what had been delivered, for TCP-Real.
    wave: (u64, u32),
    stalled: bool,
    /// There is a reduction that can be undone.
    reduced: bool,
    lines: String,
    /// Our window and threshold after each line; `None` while the kernel repairs a loss, whose window is its own.
    expected: Vec<Option<(f64, f64)>>,
}

impl Replay {
    fn new(name: &str, srtt: u32, syn_lost: bool) -> Self {
        let rwnd = if name == "hark" { 900.0 } else { 1e6 };
        let mut ours = Stage::new(ours(name).build(&KERNEL), rwnd);
        ours.path.smss = MSS;
        ours.path.srtt = Some(Duration::from_micros(srtt.into()));
        ours.path.min_rtt = ours.path.srtt;
        let mut r = Self {
            ours,
            hark: name == "hark",
            tcp_real: name == "tcp-real",
            marks: name != "westwood-plus",
            now: 1_000_000,
            srtt,
            min_rtt: srtt,
            delivered: 0,
            // The first acknowledgement ends a round.
            in_round: 1000,
            wave: (1_000_000, 0),
            stalled: false,
            reduced: false,
            lines: String::new(),
            expected: Vec::new(),
        };
        r.clock();
        let start = Start::Established { rtt: r.ours.path.srtt, syn_lost, cached: None };
        r.ours.call(|cc, cx| cc.on_start(cx, &start));
        let window = rwnd as u64 * u64::from(MSS);
        r.line(&format!("start {} {srtt} {MSS} {window} {}", r.now, if syn_lost { 1 } else { 10 }));
        r
    }

    fn clock(&mut self) {
        self.ours.now = Instant::ZERO + Duration::from_micros(self.now);
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.lines, "{line}");
        let window = window_of(&self.ours);
        self.expected.push((self.ours.path.phase != Phase::Recovery || self.hark).then_some(window));
    }

    /// An acknowledgement of `acked` segments that reports `arrived`, with an RTT if there is one.
    fn ack(&mut self, kind: AckKind, acked: u32, arrived: u32, lost: u32, rtt: Option<u32>, limited: bool) {
        let limited = limited || self.hark;
        let (cwnd, ssthresh) = window_of(&self.ours);
        self.ours.path.after_timeout &= cwnd < ssthresh;
        if let Some(rtt) = rtt {
            // RFC 6298, in whole microseconds.
            self.srtt = (7 * self.srtt + rtt) / 8;
            self.min_rtt = self.min_rtt.min(rtt);
        }
        self.delivered += arrived;
        self.in_round += 1;
        // A round is about a window of acknowledgements; only an acknowledgement with news of a segment can end it.
        let round = (acked > 0 || rtt.is_some()) && f64::from(self.in_round) > self.ours.cwnd().min(200.0);
        let micros = |us: u32| Duration::from_micros(us.into());
        let path = &mut self.ours.path;
        path.srtt = Some(micros(self.srtt));
        path.min_rtt = Some(micros(self.min_rtt));
        path.delivered += u64::from(arrived * MSS);
        path.lost += u64::from(lost * MSS);
        path.round += u64::from(round);
        let mut receiver_rate = None;
        if round {
            self.in_round = 0;
            let (since, before) = self.wave;
            let bits = u64::from(self.delivered - before) * u64::from(MSS) * 8;
            receiver_rate = Some(Rate::from_bits_per_sec(bits * 1_000_000 / (self.now - since).max(1)));
            self.wave = (self.now, self.delivered);
        }
        if self.stalled {
            let transmit = Transmit { sent: 0, clock: Clock::Ack, blocked: Blocked::Rwnd };
            self.ours.call(|cc, cx| cc.on_transmit(cx, &transmit));
        }
        let open = self.ours.path.phase == Phase::Open;
        let bound = rtt.filter(|_| !open).map(|rtt| RateSample {
            delivered: 0,
            interval: micros(rtt),
            rate: None,
            app_limited: false,
            prior_delivered: 0,
            lost: 0,
            in_flight: 0,
        });
        let a = Ack {
            rtt: rtt.map(micros),
            rate: bound,
            receiver_rate: receiver_rate.filter(|_| self.tcp_real),
            lost: lost.into(),
            cwnd_limited: limited,
            ..ack(kind, acked.into())
        };
        self.ours.call(|cc, cx| cc.on_ack(cx, &a));
        let line = format!(
            "ack {} {acked} {arrived} {lost} {} {} {} {} {} {}",
            self.now,
            rtt.map_or(-1, i64::from),
            self.srtt,
            self.min_rtt,
            u8::from(round),
            u8::from(limited),
            u8::from(self.stalled)
        );
        if round {
            self.stalled = false;
        }
        self.line(&line);
    }

    fn duplicate(&mut self, count: u32, lost: u32) {
        self.ack(AckKind::Duplicate { count, new_sack: true, dsack: false }, 0, 1, lost, None, true);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Acks { count, gap, acked, rtt, limited } => {
                for n in 0..count {
                    self.now += gap;
                    self.clock();
                    // RTTs of successive segments are not all the same.
                    let rtt = rtt + n % 3 * (gap as u32 % 50);
                    self.ack(AckKind::New, acked, acked, 0, Some(rtt), limited);
                }
                if self.ours.path.phase == Phase::Loss {
                    self.ours.path.phase = Phase::Open;
                    self.line("open");
                }
            }
            Step::Loss { duplicates, partials, hole, gap, rtt } => {
                if self.ours.path.phase != Phase::Open {
                    return;
                }
                for n in 1..=2 {
                    self.now += gap;
                    self.clock();
                    self.duplicate(n, if n == 2 { hole } else { 0 });
                }
                self.ours.congestion(Signal::Loss);
                self.reduced = true;
                self.line("loss");
                for n in 0..duplicates {
                    self.now += gap;
                    self.clock();
                    self.duplicate(3 + n, 0);
                }
                for _ in 0..partials {
                    self.now += gap;
                    self.clock();
                    self.ack(AckKind::Partial, hole, 1, 0, Some(rtt), true);
                }
                self.ours.recovered();
                self.line("recovered");
            }
            Step::Mark => {
                if self.ours.path.phase == Phase::Open && self.marks {
                    self.ours.congestion(Signal::Ecn);
                    self.reduced = true;
                    self.line("mark");
                }
            }
            Step::Timeouts { count, silence } => {
                if self.ours.path.phase != Phase::Open {
                    return;
                }
                for n in 1..=count {
                    self.now += silence;
                    self.clock();
                    self.ours.timeout(n);
                    self.line(&format!("timeout {} {n}", self.now));
                }
                self.reduced = true;
            }
            Step::Undo => {
                // The first acknowledgement after a timeout shows it.
                if core::mem::take(&mut self.reduced) && !self.hark {
                    self.ours.path.after_timeout = false;
                    self.ours.path.phase = Phase::Open;
                    self.ours.call(|cc, cx| cc.on_undo(cx));
                    self.line("undo");
                }
            }
            Step::Stalled => self.stalled |= self.hark,
        }
    }
}

fn window_of(stage: &Stage<Algorithm>) -> (f64, f64) {
    (stage.cwnd(), stage.ssthresh())
}

/// The program, compiled for user space; `None`, after a skip, without a C compiler.
fn compiled(name: &str) -> Option<PathBuf> {
    if !need::program("cc") {
        return None;
    }
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-{name}"));
    let done = Command::new("cc")
        .args(["-O1", "-Wall", "-Wno-unknown-pragmas", "-Wno-unused-function"])
        .arg(format!("-DCONTROL=\"{name}.bpf.c\""))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/replay.c"))
        .arg("-o")
        .arg(&to)
        .output()
        .expect("cc runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(to)
}

/// The windows of the program after each line.
fn program(path: &Path, lines: &str) -> Vec<(f64, f64)> {
    let mut child =
        Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("its input");
    let text = lines.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let done = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads everything");
    assert!(done.status.success());
    let number = |t: &str| t.parse::<f64>().expect("a number");
    let text = String::from_utf8_lossy(&done.stdout);
    text.lines().filter_map(|l| l.split_once(' ')).map(|(a, b)| (number(a), number(b))).collect()
}

/// Replays random sequences of events. Differences are relative to the window, and in segments below a window of one segment:
/// `usual` limits 99 of 100 windows, `greatest` all.
fn replays(name: &str, cases: u32, usual: f64, greatest: f64) {
    let Some(path) = compiled(name) else { return };
    // The same sequences each time: close decisions, such as whether a rate is that of the window, may fall differently.
    let mut runner = TestRunner::new_with_rng(
        Runs { cases, failure_persistence: None, ..Runs::default() },
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let rtts = prop_oneof![5_000u32..50_000, 500_000u32..650_000];
    let found = RefCell::new((0_usize, 0_usize, 0.0_f64));
    let result = runner.run(
        &rtts.prop_flat_map(|rtt| (Just(rtt), steps(rtt), prop::bool::weighted(0.1))),
        |(rtt, steps, syn_lost)| {
            let mut replay = Replay::new(name, rtt, syn_lost);
            for step in steps {
                replay.step(step);
                // No path holds a greater window, nor does the fixed-point arithmetic.
                if replay.ours.cwnd() > 1e5 {
                    break;
                }
            }
            let theirs = program(&path, &replay.lines);
            prop_assert_eq!(theirs.len(), replay.expected.len());
            for (n, (ours, theirs)) in replay.expected.iter().zip(&theirs).enumerate() {
                let Some(ours) = ours else { continue };
                let off = |a: f64, b: f64| if a == b { 0.0 } else { (a - b).abs() / a.max(1.0) };
                let off = off(ours.0, theirs.0).max(off(ours.1, theirs.1));
                let mut found = found.borrow_mut();
                *found = (found.0 + 1, found.1 + usize::from(off <= usual), found.2.max(off));
                let line = replay.lines.lines().nth(n);
                prop_assert!(
                    off <= greatest,
                    "line {}, {:?}: ours {:?}, the program's {:?}",
                    n,
                    line,
                    ours,
                    theirs
                );
            }
            Ok(())
        },
    );
    let (all, close, most) = *found.borrow();
    println!("{name}: {all} windows, {close} within {usual:.0e}, greatest difference {most:.1e}");
    if let Err(e) = result {
        panic!("{name}: {e}");
    }
    assert!(all > 50_000, "{name}: too few windows are compared");
    assert!(close as f64 >= 0.99 * all as f64, "{name}: {close} of {all} windows are within {usual}");
}

#[test]
fn gaimd_has_the_same_windows() {
    replays("gaimd", 100, 1e-5, 1e-5);
}

#[test]
fn hybla_has_the_same_windows() {
    replays("hybla", 100, 2e-5, 1e-4);
}

#[test]
fn westwood_plus_has_the_same_windows() {
    replays("westwood-plus", 100, 1e-5, 1e-4);
}

#[test]
fn tibet_has_the_same_windows() {
    replays("tibet", 100, 1e-5, 1e-4);
}

#[test]
fn westwood_abse_has_the_same_windows() {
    // Whether the path delivers the whole window, and which arrivals are within an interval, are yes or no: where that is close, a
    // rounding changes a sample by an arrival.
    replays("westwood-abse", 100, 1e-3, 2e-2);
}

#[test]
fn the_increase_of_tcp_real_has_the_same_windows() {
    replays("tcp-real", 100, 1e-5, 1e-5);
}

#[test]
fn hark_without_probes_has_the_same_windows() {
    replays("hark", 100, 1e-5, 1e-4);
}
