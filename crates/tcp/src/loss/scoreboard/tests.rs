use super::*;

const MSS: u32 = 1448;
/// 16 MB in segments.
const WINDOW: u64 = 16_000_000 / MSS as u64;

fn at(n: u64) -> u64 {
    n * u64::from(MSS)
}

/// Every other segment of a 16 MB window arrives and is acknowledged; up to four blocks, the newest first. Each
/// acknowledgement may send one segment. Then the retransmissions arrive. Returns (acknowledgements, steps).
fn comb(window: u64) -> (u64, u64) {
    let mut b = Scoreboard::new(0, 3, MSS);
    (0..window).for_each(|_| b.send(MSS));
    let mut acks = 0;
    let mut resent = alloc::vec::Vec::new();
    let mut started = false;
    for n in (1..window).step_by(2) {
        let mut blocks = [(0, 0); 4];
        for (k, block) in (0..4).zip(&mut blocks) {
            let i = n.saturating_sub(2 * k).max(1);
            *block = (at(i), at(i + 1));
        }
        b.apply(0, &blocks);
        acks += 1;
        if b.head_lost() && !started {
            started = true;
            b.begin_episode(false);
        }
        if started {
            if let Some(NextSeg::Lost(i)) = b.next_seg(false) {
                resent.push(b.item(i).expect("in the list").seq);
                b.retransmit(i, Instant::ZERO);
            }
        }
    }
    for seq in resent {
        // All below has arrived; the rest of the comb is reported again with each acknowledgement.
        let ack = (seq + at(2)).min(at(window));
        b.apply(ack, &[(ack + at(1), ack + at(2)), (at(window - 1), at(window))]);
        acks += 1;
        if let Some(NextSeg::Lost(i) | NextSeg::Hole(i)) = b.next_seg(false) {
            b.retransmit(i, Instant::ZERO);
        }
    }
    (acks, b.steps)
}

#[test]
fn a_window_full_of_holes_costs_a_few_steps_per_acknowledgement() {
    for window in [WINDOW / 16, WINDOW / 4, WINDOW] {
        let (acks, steps) = comb(window);
        assert!(acks > window * 9 / 10, "{acks}");
        assert!(steps < 12 * acks, "{window} segments: {steps} steps for {acks} acknowledgements");
    }
}

#[test]
fn one_block_that_grows_segment_by_segment_is_not_walked_again() {
    let mut b = Scoreboard::new(0, 3, MSS);
    (0..WINDOW).for_each(|_| b.send(MSS));
    for n in 2..=WINDOW {
        b.apply(0, &[(at(1), at(n))]);
    }
    assert!(b.steps < 5 * WINDOW, "{} steps", b.steps);
    // The same downwards: each block bridges to what is known above it.
    let mut b = Scoreboard::new(0, 3, MSS);
    (0..WINDOW).for_each(|_| b.send(MSS));
    for n in (1..WINDOW).rev() {
        b.apply(0, &[(at(n), at(WINDOW))]);
    }
    assert!(b.steps < 5 * WINDOW, "{} steps", b.steps);
}

#[test]
fn a_rescue_changes_neither_pipe_nor_what_may_be_retransmitted() {
    let mut b = Scoreboard::new(0, 3, MSS);
    (0..4).for_each(|_| b.send(MSS));
    b.begin_episode(false);
    b.mark_head_lost();
    b.retransmit(0, Instant::ZERO);
    let pipe = b.pipe();
    assert_eq!(b.next_seg(false).or_else(|| b.rescue()), Some(NextSeg::Rescue(3)));
    b.rescue_sent(3, Instant::ZERO);
    assert_eq!((b.pipe(), b.rescue()), (pipe, None));
}

/// A window with every other segment lost, and every second retransmission lost again: steps through the list of
/// times and acknowledgements.
fn comb_by_time(window: u64) -> (u64, u64) {
    let ms = skyhaul_base::Duration::from_millis;
    let mut b = Scoreboard::new(0, 3, MSS);
    let mut rack = crate::Rack::new(&crate::Config::modern());
    let report = |recovering| crate::RackReport { recovering, ..Default::default() };
    let mut now = Instant::ZERO + ms(1);
    (0..window).for_each(|_| rack.send(&mut b, MSS, now));
    let mut acks = 0;
    let mut resent = VecDeque::new();
    let resend = |b: &mut Scoreboard, rack: &mut crate::Rack, now: Instant, resent: &mut VecDeque<u64>| {
        while let Some(i) = rack.next_lost(b) {
            resent.push_back(b.item(i).expect("in the list").seq);
            rack.resend(b, i, now);
        }
    };
    now += ms(550);
    for n in (1..window).step_by(2) {
        now += ms(1);
        rack.apply(&mut b, now, 0, &[(at(n), at(n + 1))], &report(n > 1));
        acks += 1;
        resend(&mut b, &mut rack, now, &mut resent);
    }
    now += ms(550);
    let mut arrives = false;
    while let Some(seq) = resent.pop_front() {
        arrives = !arrives;
        now += ms(1);
        if arrives && seq >= b.una() {
            let block = (seq, seq + at(1));
            let ack = if seq == b.una() { (seq + at(2)).min(b.max()) } else { b.una() };
            rack.apply(&mut b, now, ack, &[block], &report(true));
            acks += 1;
            resend(&mut b, &mut rack, now, &mut resent);
        }
    }
    (acks, rack.steps())
}

#[test]
fn detection_by_time_costs_a_few_steps_per_acknowledgement() {
    for window in [WINDOW / 16, WINDOW / 4, WINDOW] {
        let (acks, steps) = comb_by_time(window);
        assert!(acks > window / 2, "{acks}");
        assert!(steps < 40 * acks, "{window} segments: {steps} steps for {acks} acknowledgements");
    }
}

#[test]
fn blocks_that_begin_anywhere_are_not_walked_again_and_again() {
    let mut b = Scoreboard::new(0, 3, MSS);
    (0..WINDOW).for_each(|_| b.send(MSS));
    // Each segment by itself, so that no skip distance spans more than one.
    for n in 1..WINDOW {
        b.apply(0, &[(at(n), at(n + 1))]);
    }
    let before = b.steps;
    for n in (1..WINDOW).rev().step_by(7) {
        b.apply(0, &[(at(WINDOW - n), at(WINDOW)), (at(n), at(WINDOW))]);
    }
    let (acks, steps) = (WINDOW / 7, b.steps - before);
    assert!(steps < 40 * acks, "{steps} steps for {acks} acknowledgements");
}

#[test]
fn what_is_withdrawn_returns_to_its_place_in_time_at_a_few_steps_each() {
    let ms = skyhaul_base::Duration::from_millis;
    let mut b = Scoreboard::new(0, 3, MSS);
    let mut rack = crate::Rack::new(&crate::Config::modern());
    let mut now = Instant::ZERO;
    for _ in 0..WINDOW {
        now += ms(1);
        rack.send(&mut b, MSS, now);
    }
    now += ms(9000);
    rack.timeout(&mut b, now, true, true);
    // Some are sent again, which is later than all that comes back to where it was.
    for i in (0..WINDOW as usize).step_by(3) {
        now += ms(1);
        rack.resend(&mut b, i, now);
    }
    let before = rack.steps();
    rack.withdraw(&mut b);
    assert!(rack.steps() - before < 12 * WINDOW, "{} steps", rack.steps() - before);
    let order: alloc::vec::Vec<_> = rack.in_order().map(|s| b.sent_at(s)).collect();
    assert_eq!(order.len() as u64, WINDOW);
    assert!(order.is_sorted());
}
