//! Flows of video: what the viewer gets over clean, lossy and dead paths, and that it can be had from the events alone.

use crate::common;

use common::{bulk, direction, geo, scenario};
use skyhaul_apps::video::{Config, Settings, Viewer, packet::Cut};
use skyhaul_apps::{Arrival, Datagram, Frame, FrameStatus, FrameType, Viewed};
use skyhaul_base::amount::RateSpec;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_scenario::resolved::{App, FlowGroup, Resolved, Start, Transport};
use skyhaul_sim::{FlowResult, Sim, run};
use skyhaul_tcp::Config as Endpoint;
use skyhaul_trace::{Class, Event, Memory, Null};

const RTT: f64 = 0.55;

fn film() -> Config {
    Config { rate: Some(RateSpec::Bits(Rate::from_bits_per_sec(320_000))), ..Config::default() }
}

fn group(transport: Transport, config: &Config) -> FlowGroup {
    let mut flow = bulk("video", 2, "sack", 240, RTT);
    flow.endpoint = Endpoint { receive_buffer: 240 * 960, ..Endpoint::ns2_2001() };
    flow.start = Start::At(Duration::ZERO);
    flow.transport = transport;
    if transport == Transport::Udp {
        flow.endpoint.header = 28;
        flow.endpoint.mss = 972;
    }
    let over = transport.for_apps(flow.endpoint.mss);
    flow.app = App::from(config.clone()).resolve(over).expect("a film");
    flow
}

fn world(seconds: f64, loss: f64, flow: FlowGroup) -> Resolved {
    let mut link = geo(1250.0, RTT, 100, loss);
    link.reverse = direction(1_000_000, RTT / 2.0, Some(100), loss);
    scenario(seconds, vec![link], vec![flow])
}

fn flow(s: &Resolved) -> FlowResult {
    run(s, 1, Null).expect("a world").flows[0].clone()
}
fn video(s: &Resolved) -> Viewed {
    *flow(s).video.expect("a viewer")
}

#[test]
fn over_a_clean_path_everything_is_there_in_time() {
    for transport in [Transport::Tcp, Transport::Udp] {
        // The first seconds over TCP are those of slow start.
        let mut film = film();
        film.viewer.warm = Duration::from_secs(10);
        let f = flow(&world(60.0, 0.0, group(transport, &film)));
        let v = f.video.as_deref().expect("a viewer");
        let delayed = v.delayed.and_then(|s| s.value());
        assert_eq!((delayed, v.decodable.value(), v.died), (Some(0.0), Some(1.0), None), "{v:?}");
        if transport == Transport::Udp {
            assert_eq!((v.useless.part, v.played.stalls, v.still), (0, 0, Some(0.0)));
        } else {
            assert!(v.useless.value() < Some(0.05) && v.played.stalled < 2.0, "{v:?}");
        }
        // Propagation, and a few packets one after the other.
        let delay = v.measured.delay_p50.expect("packets");
        assert!((0.27..0.29).contains(&delay), "{delay}");
        let startup = v.played.startup.expect("it starts");
        let most = if transport == Transport::Udp { 1.35 } else { 4.0 };
        assert!((1.2..most).contains(&startup), "{startup}");
        // 25 frames per second.
        assert!((1249..=1251).contains(&v.frames.iter().sum::<u64>()), "{:?}", v.frames);
        assert_eq!((f.timeouts, f.lost.iter().sum::<u64>()), (0, 0));
    }
}

#[test]
fn losses_show_and_worse_ones_show_more() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let some = video(&world(200.0, 1e-3, group(transport, &film())));
        let more = video(&world(200.0, 2e-2, group(transport, &film())));
        let decodable = |v: &Viewed| v.decodable.value().expect("frames");
        assert!(decodable(&more) < decodable(&some) - 0.05 && decodable(&some) < 1.0, "{transport:?}");
        assert!(more.useless.value() > some.useless.value());
        assert!(more.played.stalled > some.played.stalled);
        if transport == Transport::Tcp {
            // What is lost comes later by a round trip, with all that waits for it.
            assert!(more.measured.delay_p99 > Some(0.8), "{:?}", more.measured);
            assert!(more.delayed.and_then(|s| s.value()) > Some(0.005));
        } else {
            assert!(more.measured.delay_p99 < Some(0.32), "{:?}", more.measured);
        }
    }
}

/// The viewer of a flow, from the events of a run and nothing else but how frames were cut.
fn from_events(
    events: &[(Instant, Event)],
    flow: u32,
    header: u32,
    cut: Cut,
    stream: bool,
    end: Instant,
) -> Viewed {
    let mut viewer = Viewer::new(Settings::default(), 25.0, cut, stream);
    for &(now, event) in events {
        match event {
            Event::Frame { flow: f, frame } if f == flow => {
                let status =
                    [FrameStatus::Sent, FrameStatus::Skipped, FrameStatus::Gap][usize::from(frame.status)];
                let kind = FrameType::ALL[usize::from(frame.kind)];
                let packets =
                    if status == FrameStatus::Sent { frame.bytes.div_ceil(cut.payload) as u32 } else { 0 };
                let (number, bytes, target) = (frame.number, frame.bytes, frame.target);
                viewer.produced(&Frame { number, kind, at: now, bytes, packets, status, target });
            }
            Event::Delivered { flow: f, packet: p } if f == flow && p.class == Class::Data => {
                let len = p.size - header;
                if !stream {
                    let datagram = Datagram { number: p.seq.into(), sent_at: now, len };
                    viewer.arrived(now, &Arrival::Datagram(datagram));
                } else if len > 0 {
                    let from = u64::from(p.seq.wrapping_sub(1));
                    viewer.arrived(now, &Arrival::Segment { from, to: from + u64::from(len) });
                }
            }
            Event::InOrder { flow: f, bytes } if f == flow => {
                viewer.arrived(now, &Arrival::InOrder { bytes });
            }
            Event::GaveUp { flow: f } if f == flow => viewer.died(now),
            _ => {}
        }
    }
    viewer.result(end)
}

#[test]
fn every_measure_is_in_the_events() {
    let padded = Config { pad: true, ..film() };
    let shared = Config { flush: false, ..film() };
    let mut handshake = group(Transport::Tcp, &film());
    (handshake.handshake, handshake.known_rtt) = (true, None);
    let cases = [
        group(Transport::Tcp, &film()),
        group(Transport::Tcp, &padded),
        group(Transport::Tcp, &shared),
        group(Transport::Udp, &film()),
        group(Transport::Udp, &shared),
        handshake,
    ];
    for flow in cases {
        let s = world(120.0, 1e-2, flow);
        let group = &s.flows[0];
        let App::Video(config) = &group.app else { panic!("a film") };
        let stream = group.transport == Transport::Tcp;
        let cut = Cut { payload: 960, flush: config.flush, pad: config.pad };
        let mut log = Memory::default();
        let result = Sim::new(&s, 3, &mut log).expect("a world").finish();
        let end = Instant::ZERO + s.duration;
        for (i, f) in result.flows.iter().enumerate() {
            let again = from_events(&log.events, i as u32, group.endpoint.header, cut, stream, end);
            assert_eq!(f.video.as_deref(), Some(&again), "{:?}", group.transport);
            assert!(again.decodable.part < again.decodable.of, "something was lost");
        }
    }
}

#[test]
fn a_transport_that_dies_is_never_perfect() {
    // The link goes down for good after 20 s, and the sender gives up.
    let mut flow = group(Transport::Tcp, &film());
    flow.endpoint = Endpoint { receive_buffer: 240 * 960, ..Endpoint::modern() };
    let mut s = world(3000.0, 0.0, flow);
    s.links[0].forward.drop_in_flight = true;
    s.events = vec![skyhaul_scenario::resolved::Event {
        at: Duration::from_secs(20),
        link: 0,
        forward: true,
        change: skyhaul_path::Change::Up(false),
    }];
    let mut log = Memory::default();
    let result = Sim::new(&s, 1, &mut log).expect("a world").finish();
    let v = result.flows[0].video.as_deref().expect("a viewer");
    let died = v.died.expect("it died").as_secs_f64();
    assert!((300.0..2500.0).contains(&died), "{died}");
    assert_eq!((v.delayed, v.delayed_wire, v.variation, v.measured.delay_p99), (None, None, None, None));
    assert!(v.still > Some(0.98) && v.decodable.value() < Some(0.02) && v.silence > Some(2900.0), "{v:?}");
    assert!(log.events.iter().any(|(_, e)| matches!(e, Event::GaveUp { flow: 0 })));
    // Everything that can be said of such a flow says so, or nothing.
    for q in skyhaul_sim::quantity::FLOW {
        let value = q.value(&result.flows[0], result.duration).real();
        let perfect = match q.name {
            "decodable" | "frames_complete" | "frames_complete_i" | "frames_complete_p"
            | "frames_complete_b" => value > 0.5,
            "delayed" | "delayed_arrival" | "delayed_wire" | "unevenness" | "jitter" | "delay_p50"
            | "useless" => !value.is_nan(),
            name if name.starts_with("frame_delay_") => !value.is_nan(),
            "late_500ms" | "late_1s" | "late_2s" | "stalled_share" => value < 0.5,
            _ => false,
        };
        assert!(!perfect, "{} = {value}", q.name);
    }
}

#[test]
fn a_coder_that_follows_sends_less_where_less_is_allowed() {
    // 150 kbit/s are less than the film has.
    let slow = |coder| {
        let config = Config { coder, ..film() };
        let mut s = world(200.0, 0.0, group(Transport::Tcp, &config));
        s.flows[0].count = 1;
        s.links[0].forward.rate = Some(Rate::from_bits_per_sec(200_000)).into();
        s.links[0].forward.queue.limit = skyhaul_path::Limit::Packets(20);
        video(&s)
    };
    let (fixed, follows) = (slow(None), slow(Some(skyhaul_apps::video::Coder::default())));
    assert_eq!((fixed.switches, fixed.gaps), (0, 0));
    assert!(follows.switches > 3 && follows.gaps > 0, "{follows:?}");
    assert!(
        follows.decodable.value() > fixed.decodable.value(),
        "{:?} {:?}",
        follows.decodable,
        fixed.decodable
    );
    assert!(follows.measured.delay_p95 < fixed.measured.delay_p95);
}
