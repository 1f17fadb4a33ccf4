//! On idealised satellite paths of 550 ms, with segments of 1000 bytes.

use super::*;

/// A path of `mbit` Mbit/s. The transmission of a segment is a part of the 550 ms.
fn path(mbit: u64, buffer: usize) -> (Ideal<Bbr3>, f64) {
    let rtt = Duration::from_millis(550) - Duration::from_nanos(8_000_000 / mbit);
    let line = Line { rtt, rate: Some(Rate::from_bits_per_sec(mbit * 1_000_000)), buffer };
    let mut run = Ideal::new(bbr(&Config::default()), line, 100_000.0);
    run.start();
    (run, 0.55 * mbit as f64 * 125.0)
}
/// Looks at the run every 50 ms from `from` to `to` seconds.
fn watch(run: &mut Ideal<Bbr3>, from: u32, to: u32, mut look: impl FnMut(&Ideal<Bbr3>)) {
    for t in 20 * from..=20 * to {
        run.run_until(Instant::from_secs_f64(f64::from(t) * 0.05));
        look(run);
    }
}

#[test]
fn startup_finds_the_rate_in_eight_rounds_and_ends_in_ten() {
    let (mut run, bdp) = path(10, 100_000);
    assert_eq!(bdp, 687.5);
    let (mut found, mut left, mut most) = (None, None, 0.0f64);
    watch(&mut run, 0, 10, |run| {
        let cc = &run.stage.cc;
        most = most.max(run.stage.path.pipe());
        if run.stage.variable("bandwidth") > 9.5e6 {
            found.get_or_insert(cc.round_count);
        }
        if cc.state != State::Startup {
            left.get_or_insert(cc.round_count);
        }
    });
    // 10 · 2^k segments: more than 687 with k = 7, whose rate is known a round later.
    assert!(found.is_some_and(|r| r <= 8), "{found:?}");
    assert!(left.is_some_and(|r| r <= 10), "{left:?}");
    // The window of two bandwidth-delay products bounds the queue of startup to one; what the last acknowledgement
    // brought beyond the rate comes on top.
    assert!(most > 1.5 * bdp && most <= 2.1 * bdp, "{most}");
}

#[test]
fn in_steady_state_it_holds_the_rate_and_a_bounded_queue() {
    let (mut run, bdp) = path(10, 100_000);
    run.run_until(Instant::from_secs_f64(20.0));
    let before = run.stage.path.delivered;
    let (mut most, mut cruising) = (0.0f64, 0);
    watch(&mut run, 20, 60, |run| {
        let (cc, in_flight) = (&run.stage.cc, run.stage.path.pipe());
        let bw = run.stage.variable("bandwidth");
        assert!((9.9e6..=10.01e6).contains(&bw), "{bw}");
        assert_eq!(cc.rtt.min(), Some(Duration::from_millis(550)));
        most = most.max(in_flight);
        if cc.state == State::ProbeBwCruise {
            cruising += 1;
            assert!(in_flight <= bdp, "no queue while cruising: {in_flight}");
        }
    });
    // Searches of three rounds at 5/4 of the rate queue 3/4 of a bandwidth-delay product, and the window allows
    // 5/4 and three segments.
    assert!(most > 1.5 * bdp && most <= 2.25 * bdp + 3.0, "{most}");
    // 40 s, seen every 50 ms; a cycle spends half of its time there.
    assert!((200..600).contains(&cruising), "{cruising}");
    // Each measurement of the RTT, every six seconds, holds half of the window back for two round trips: 0.55 s
    // of sending lost in 6 s.
    let used = (run.stage.path.delivered - before) as f64 / (1.25e6 * 40.0);
    assert!((0.88..0.95).contains(&used), "{used}");
}

#[test]
fn a_shallow_buffer_is_learnt() {
    // Half a bandwidth-delay product of buffer: 137.5 / 2.
    let (mut run, bdp) = path(2, 69);
    run.run_until(Instant::from_secs_f64(30.0));
    let (delivered, lost) = (run.stage.path.delivered, run.stage.path.lost);
    assert!(lost > 0, "startup overran it");
    // What the path and its buffer hold, and what a search at 5/4 adds in the round before the loss is known.
    let holds = 1.25 * bdp + 69.0;
    watch(&mut run, 30, 90, |run| {
        let long = run.stage.cc.bounds.inflight_longterm;
        assert!(long > 0.9 * bdp && long < holds, "{long}");
        assert!(run.stage.path.pipe() < holds, "{}", run.stage.path.pipe());
    });
    let used = (run.stage.path.delivered - delivered) as f64 / (0.25e6 * 60.0);
    let lost = (run.stage.path.lost - lost) as f64 / (0.25e6 * 60.0);
    assert!((0.85..0.97).contains(&used), "{used}");
    // A search may lose 2 % of one round; they come every few seconds.
    assert!(lost < 0.01, "{lost}");
}
