//! The viewer against naive forms of the definitions, over random films and networks.

use super::*;
use crate::datagram::Datagram;
use crate::frame::FrameType as Type;
use skyhaul_base::Rng;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}
const CUT: Cut = Cut { payload: 960, flush: true, pad: false };

fn frame(number: u64, kind: Type, ms: u64, bytes: u64) -> Frame {
    let packets = bytes.div_ceil(960) as u32;
    Frame { number, kind, at: at(ms), bytes, packets, status: FrameStatus::Sent, target: 1e5 }
}
fn viewer(stream: bool) -> Viewer {
    Viewer::new(Settings::default(), 25.0, CUT, stream)
}
/// Number of packets that arrived, in order or not.
fn packets_on_the_wire(v: &mut Viewer) -> u64 {
    v.result(at(1_000_000)).delayed_wire.unwrap().of
}
/// Produces a film of `frames` frames of one packet each, I P P P I …
fn film(v: &mut Viewer, frames: u64) {
    for n in 0..frames {
        let kind = if n % 4 == 0 { Type::I } else { Type::P };
        v.produced(&frame(n, kind, 40 * n, 960));
    }
}

#[test]
fn an_undisturbed_stream_is_perfect_and_a_dead_one_is_not() {
    let mut v = viewer(true);
    film(&mut v, 250);
    for n in 0..250 {
        v.arrived(at(40 * n + 300), &Arrival::InOrder { bytes: 960 * (n + 1) });
    }
    let r = v.result(at(10_300));
    assert_eq!(r.delayed, Some(Share { part: 0, of: 250 }));
    assert_eq!((r.complete[0].value(), r.decodable.value(), r.useless.part), (Some(1.0), Some(1.0), 0));
    assert_eq!((r.played.startup, r.played.stalls, r.still), (Some(1.26), 0, Some(0.0)));
    assert_eq!(
        (r.measured.delay_p50.map(|d| (d * 1e3).round()), r.late.map(|l| l.part)),
        (Some(300.0), [0; 3])
    );
    assert!(r.variation.unwrap() < 0.05 && r.died.is_none());

    // The same, but the transport dies after 5 s.
    let mut v = viewer(true);
    film(&mut v, 250);
    for n in 0..125 {
        v.arrived(at(40 * n + 300), &Arrival::InOrder { bytes: 960 * (n + 1) });
    }
    v.died(at(5400));
    let r = v.result(at(20_000));
    assert_eq!(r.died, Some(at(5400)));
    assert_eq!((r.delayed, r.delayed_arrival, r.delayed_wire, r.variation), (None, None, None, None));
    assert_eq!((r.measured.delay_p50, r.measured.jitter, r.measured.delivered), (None, None, 125));
    assert_eq!((r.decodable, r.late[0]), (Share { part: 125, of: 250 }, Share { part: 125, of: 250 }));
    assert_eq!(r.played.stalls, 1);
    assert!(r.still.unwrap() > 0.6 && r.silence.unwrap() > 14.0, "{r:?}");
}

#[test]
fn without_arrivals_nothing_is_seen() {
    let mut v = viewer(true);
    assert_eq!(v.result(at(1000)).still, None, "no film, no verdict");
    film(&mut v, 100);
    let r = v.result(at(10_000));
    assert_eq!((r.still, r.played.startup, r.decodable), (Some(1.0), None, Share { part: 0, of: 100 }));
    assert_eq!(
        (r.delayed.unwrap().value(), r.measured.delay_p50, r.late[2].value()),
        (None, None, Some(1.0))
    );
}

#[test]
fn a_short_film_is_shown_even_if_its_end_is_reported_after_its_last_byte() {
    let mut v = viewer(true);
    film(&mut v, 10);
    v.arrived(at(390), &Arrival::InOrder { bytes: 960 * 10 });
    v.over(at(400));
    let r = v.result(at(5000));
    assert_eq!((r.played.startup, r.played.stalls, r.still), (Some(0.4), 0, Some(0.0)));
    assert!((r.played.played - 0.4).abs() < 1e-9);
}

#[test]
fn late_frames_are_useless_and_so_are_frames_coded_from_them() {
    let mut v = viewer(true);
    film(&mut v, 8);
    // Frame 1 is complete 1.03 s after it was produced: 2 and 3 wait behind it and are in time, but cannot be decoded.
    let bytes = |n: u64| Arrival::InOrder { bytes: 960 * n };
    v.arrived(at(300), &bytes(1));
    v.arrived(at(1060), &bytes(1));
    v.arrived(at(1070), &bytes(8));
    let r = v.result(at(5000));
    assert_eq!((r.complete[0], r.complete[1]), (Share { part: 2, of: 2 }, Share { part: 5, of: 6 }));
    assert_eq!((r.decodable, r.useless), (Share { part: 5, of: 8 }, Share { part: 3 * 960, of: 8 * 960 }));
}

#[test]
fn segments_out_of_order_are_seen_on_the_wire_only() {
    let mut v = viewer(true);
    film(&mut v, 4);
    let segment = |n: u64| Arrival::Segment { from: 960 * n, to: 960 * (n + 1) };
    for (ms, n, in_order) in [(100, 0, 1), (140, 2, 1), (180, 3, 1), (300, 1, 4)] {
        v.arrived(at(ms), &segment(n));
        v.arrived(at(ms), &Arrival::InOrder { bytes: 960 * in_order });
    }
    let r = v.result(at(400));
    // In order, packets 1, 2 and 3 arrive at once, 200 ms after packet 0: packet 1 is delayed. On the wire, packet 1 is
    // delayed as well; packet 2 arrives before packet 1, so it is not compared.
    assert_eq!((r.delayed, r.delayed_wire), (Some(Share { part: 1, of: 4 }), Some(Share { part: 1, of: 4 })));
    // A packet is counted once it is complete; a segment may complete several.
    let mut v = viewer(true);
    film(&mut v, 4);
    v.arrived(at(10), &Arrival::Segment { from: 0, to: 959 });
    assert_eq!(packets_on_the_wire(&mut v), 0);
    v.arrived(at(20), &Arrival::Segment { from: 959, to: 2880 });
    assert_eq!(packets_on_the_wire(&mut v), 3);
}

#[test]
fn frames_produced_during_the_warm_up_are_not_counted() {
    let settings = Settings { warm: Duration::from_millis(60), ..Settings::default() };
    let mut v = Viewer::new(settings, 25.0, CUT, true);
    film(&mut v, 4);
    v.arrived(at(2500), &Arrival::InOrder { bytes: 960 * 4 });
    let r = v.result(at(3000));
    assert_eq!(
        (r.frames, r.decodable.of, r.packets, r.delayed),
        ([0, 2, 0], 2, 2, Some(Share { part: 0, of: 2 }))
    );
    assert_eq!(r.late.map(|l| l.part), [2, 2, 2]);
}

#[test]
fn rates_of_the_coder_are_counted() {
    let mut v = viewer(true);
    for (n, target) in [320e3, 320e3, 200e3, 220e3].into_iter().enumerate() {
        v.produced(&Frame { target, ..frame(n as u64, Type::I, 40 * n as u64, 960) });
    }
    v.produced(&Frame {
        status: FrameStatus::Gap,
        bytes: 0,
        packets: 0,
        target: 220e3,
        ..frame(4, Type::P, 160, 0)
    });
    let r = v.result(at(200));
    assert_eq!((r.switches, r.switched_by, r.gaps), (2, Some(70e3), 1));
}

/// A random film of several packets per frame, some of them not sent.
fn random_film(rng: &mut Rng, n: u64) -> Vec<Frame> {
    let kinds = [Type::I, Type::B, Type::B, Type::P, Type::B, Type::B, Type::P];
    let one = |number: u64| {
        let mut f = frame(number, kinds[number as usize % 7], 40 * number, 1 + rng.below(4000));
        if rng.unit() < 0.05 {
            (f.status, f.bytes, f.packets) = (FrameStatus::Skipped, 0, 0);
        }
        f
    };
    (0..n).map(one).collect()
}

/// Which frames can be decoded, by definition.
fn decodable(film: &[Frame], in_time: &[bool]) -> Vec<bool> {
    let mut ok: Vec<bool> = Vec::new();
    for (i, f) in film.iter().enumerate() {
        let mut anchors = (0..i).rev().filter(|j| film[*j].kind.is_anchor());
        let references = match f.kind {
            Type::I => true,
            Type::P => anchors.next().is_some_and(|j| ok[j]),
            Type::B => {
                let (a, b) = (anchors.next(), anchors.next());
                a.is_some_and(|j| ok[j]) && b.is_some_and(|j| ok[j])
            }
        };
        ok.push(in_time[i] && references);
    }
    ok
}

/// Reports the frames of a film and its arrivals (time in ms, what arrived) to the viewer, in the order of time.
fn play(v: &mut Viewer, film: &[Frame], arrivals: impl Iterator<Item = (u64, Arrival)>) {
    let (mut frames, mut arrivals) = (film.iter().peekable(), arrivals.peekable());
    loop {
        let frame_first = match (frames.peek(), arrivals.peek()) {
            (Some(f), Some(a)) => f.at <= at(a.0),
            (f, _) => f.is_some(),
        };
        if frame_first {
            v.produced(frames.next().unwrap());
        } else if let Some((ms, arrival)) = arrivals.next() {
            v.arrived(at(ms), &arrival);
        } else {
            return;
        }
    }
}

#[test]
fn datagrams_by_definition() {
    let mut rng = Rng::stream(11, "datagrams");
    for round in 0..30 {
        let film = random_film(&mut rng, 400);
        let loss = 0.002 * f64::from(round);
        // Arrivals as (time in ms, packet number, length in bytes), and for each frame the arrival times of its packets.
        let (mut arrivals, mut number) = (Vec::new(), 0);
        let mut times: Vec<Vec<Option<u64>>> = Vec::new();
        for f in &film {
            let mut of_frame = Vec::new();
            for i in 0..f.packets {
                let len = if i + 1 == f.packets { f.bytes - u64::from(i) * 960 } else { 960 };
                let lost = rng.unit() < loss;
                let spread = if rng.unit() < 0.02 { 1500 } else { 30 };
                let ms = 40 * f.number + 270 + rng.below(spread);
                if !lost {
                    arrivals.push((ms, number, len as u32));
                }
                of_frame.push((!lost).then_some(ms));
                number += 1;
            }
            times.push(of_frame);
        }
        arrivals.sort_unstable();
        let mut v = viewer(false);
        let datagram = |number, len| Arrival::Datagram(Datagram { number, sent_at: Instant::ZERO, len });
        play(&mut v, &film, arrivals.iter().map(|&(ms, number, len)| (ms, datagram(number, len))));
        let r = v.result(at(60_000));
        let complete_at = |packets: &Vec<Option<u64>>| {
            packets.iter().copied().collect::<Option<Vec<_>>>()?.into_iter().max()
        };
        let in_time: Vec<bool> = film
            .iter()
            .zip(&times)
            .map(|(f, packets)| complete_at(packets).is_some_and(|t| t <= 40 * f.number + 1000))
            .collect();
        let ok = decodable(&film, &in_time);
        for kind in Type::ALL {
            let of: Vec<usize> = (0..film.len()).filter(|i| film[*i].kind == kind).collect();
            let part = of.iter().filter(|i| in_time[**i]).count() as u64;
            assert_eq!(r.complete[kind as usize], Share { part, of: of.len() as u64 });
        }
        assert_eq!(r.decodable.part, ok.iter().filter(|ok| **ok).count() as u64);
        let bytes: u64 = arrivals.iter().map(|a| u64::from(a.2)).sum();
        let useful: u64 = film.iter().zip(&ok).filter(|(_, ok)| **ok).map(|(f, _)| f.bytes).sum();
        assert_eq!(r.useless, Share { part: bytes - useful, of: bytes });
        assert_eq!((r.delayed.unwrap().of, r.packets), (arrivals.len() as u64, number));
        let sent: Vec<(u64, Option<u64>)> = film
            .iter()
            .zip(&times)
            .flat_map(|(f, packets)| packets.iter().map(|t| (40 * f.number, *t)))
            .collect();
        for (late, most) in r.late.iter().zip([500, 1000, 2000]) {
            let part = sent.iter().filter(|(s, t)| t.is_none_or(|t| t - s > most)).count() as u64;
            assert_eq!(*late, Share { part, of: number });
        }
        // Play-out starts with the first complete frame that is not among the first 24, since the viewer buffers a second
        // of film; then a frame is due every 40 ms.
        let starts = (0..film.len()).filter_map(|i| Some((complete_at(&times[i])?, i))).collect::<Vec<_>>();
        let start = starts.iter().filter(|(_, i)| *i >= 24).map(|(t, _)| *t).min().unwrap();
        let shown = |i: &usize| {
            !times[*i].is_empty() && complete_at(&times[*i]).is_some_and(|t| t <= start + 40 * *i as u64)
        };
        let frozen = (0..film.len()).filter(|i| !shown(i)).count() as f64;
        // The picture is frozen from the end of the film to the end of the run, since the sender reported no end.
        let beyond = (60_000 - start).div_ceil(40) as f64 - film.len() as f64;
        assert!(
            (r.played.stalled - 0.04 * (frozen + beyond)).abs() < 0.05,
            "{} {}",
            r.played.stalled,
            frozen
        );
    }
}

#[test]
fn streams_by_definition() {
    let mut rng = Rng::stream(12, "streams");
    for _ in 0..30 {
        let film = random_film(&mut rng, 300);
        let total: u64 = film.iter().map(|f| f.bytes).sum();
        // The stream arrives in jumps: (time in ms, bytes in order). A byte takes at least 270 ms, the delay of the network.
        let available = |ms: u64| -> u64 {
            film.iter().filter(|f| f.at + Duration::from_millis(270) <= at(ms)).map(|f| f.bytes).sum()
        };
        let (mut arrived, mut jumps) = (0, Vec::new());
        let mut ms = 270;
        while arrived < total {
            let most = available(ms);
            if rng.unit() < 0.7 && most > arrived {
                arrived += 1 + rng.below(most - arrived);
                jumps.push((ms, arrived));
            }
            let pause = if rng.unit() < 0.02 { 900 } else { 30 };
            ms += 1 + rng.below(pause);
        }
        let mut v = viewer(true);
        play(&mut v, &film, jumps.iter().map(|&(ms, bytes)| (ms, Arrival::InOrder { bytes })));
        let end = jumps.last().unwrap().0 + 1;
        v.over(at(end));
        let r = v.result(at(end));
        // When the stream had arrived up to this byte.
        let when = |byte: u64| jumps.iter().find(|j| j.1 >= byte).map(|j| j.0).unwrap();
        let mut offset = 0;
        let (mut packets, mut complete) = (Vec::new(), Vec::new());
        for f in &film {
            for i in 0..u64::from(f.packets) {
                packets.push(when(offset + ((i + 1) * 960).min(f.bytes)));
            }
            offset += f.bytes;
            complete.push((f.status == FrameStatus::Sent).then(|| when(offset)));
        }
        let late = packets.windows(2).filter(|w| w[1] - w[0] > 100).count() as u64;
        let delays: Vec<u64> = film
            .iter()
            .flat_map(|f| (0..f.packets).map(|_| 40 * f.number))
            .zip(&packets)
            .map(|(produced, arrived)| arrived - produced)
            .collect();
        let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
        assert!((r.measured.delay_mean.unwrap() * 1e3 / mean - 1.0).abs() < 1e-9, "{mean} {:?}", r.measured);
        assert_eq!(
            [r.measured.delay_min, r.measured.delay_max].map(|d| d.map(|d| (d * 1e3).round() as u64)),
            [delays.iter().min().copied(), delays.iter().max().copied()]
        );
        assert_eq!(r.delayed, Some(Share { part: late, of: packets.len() as u64 }));
        let judged = |i: &usize| {
            complete[*i].is_some() || film[*i].status != FrameStatus::Sent || 40 * *i as u64 + 1000 < end
        };
        let in_time: Vec<bool> =
            (0..300).map(|i| complete[i].is_some_and(|t| t <= 40 * i as u64 + 1000)).collect();
        let ok = decodable(&film, &in_time);
        assert!((0..300).all(|i| judged(&i)));
        assert_eq!(r.decodable, Share { part: ok.iter().filter(|ok| **ok).count() as u64, of: 300 });
        // The play-out, frame by frame: it starts with a second of film, 25 frames, and resumes with half a second, 13 frames.
        let sent: Vec<usize> = (0..300).filter(|i| complete[*i].is_some()).collect();
        let ready = |from: usize, frames: usize| {
            let enough = sent.iter().find(|i| **i + 1 >= from + frames || **i == *sent.last().unwrap());
            complete[*enough.unwrap()].unwrap()
        };
        let mut base = (ready(0, 25), 0);
        let (startup, mut stalls, mut stalled) = (base.0, 0, 0);
        for &i in &sent {
            let due = base.0 + 40 * (i - base.1) as u64;
            let t = complete[i].unwrap();
            if t > due && t > base.0 {
                stalls += 1;
                let resume = sent
                    .iter()
                    .filter(|j| **j >= i)
                    .find(|j| **j + 1 >= i + 13 || *j == sent.last().unwrap());
                let on = complete[*resume.unwrap()].unwrap();
                stalled += on - due;
                base = (on, i);
            }
        }
        assert_eq!(r.played.startup.map(|s| (s * 1e3).round() as u64), Some(startup));
        assert!(
            (r.played.stalled * 1e3 - stalled as f64).abs() < 45.0 && r.played.stalls.abs_diff(stalls) <= 1,
            "{} stalls of {} ms, by definition {stalls} of {stalled}",
            r.played.stalls,
            r.played.stalled * 1e3
        );
    }
}
