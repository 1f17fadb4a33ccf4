//! Warnings: settings that are legal but usually a mistake.

mod l4s;

use super::{
    Active, Check, DirectionCheck, FlowCheck, Warning, ack_ratio, display::percent, display::short,
    packets_per_ack, reno_class,
};
use crate::resolved::{App, Change, Direction, Event, FlowGroup, Link, Resolved, Start, Transport};
use skyhaul_analysis::{loss, utilization};
use skyhaul_base::Instant;
use skyhaul_path::Limit;
use skyhaul_path::error::{self, ber};
use skyhaul_tcp::config::ProbeNegotiation;

/// A queue outside this range of BDPs raises a warning.
const USUAL_QUEUE: (f64, f64) = (0.25, 4.0);
/// A bit error rate raises a warning from this packet loss on.
const MUCH_LOSS: f64 = 1e-3;
/// A control that measures the minimum RTT raises a warning if it does so more often than once in this many RTTs: the queue
/// drains for about one RTT and the measurement takes another, and in both it sends less.
const FEW_RTTS: f64 = 5.0;
/// Number of following seeds that are tried if a fade changes nothing.
const SKIES: u64 = 20;
/// Number of recorded values from which a file grows beyond a few hundred megabytes.
const MANY_VALUES: f64 = 2e7;

/// All warnings.
pub(super) fn warnings(scenario: &Resolved, check: &Check) -> Vec<Warning> {
    let mut out = Vec::new();
    dead_ends(scenario, check, &mut out);
    unchanging_fades(scenario, check, &mut out);
    queues(scenario, check, &mut out);
    phases(scenario, check, &mut out);
    windows(scenario, check, &mut out);
    errors(scenario, check, &mut out);
    intervals(scenario, check, &mut out);
    l4s::controls(scenario, check, &mut out);
    l4s::targets(scenario, check, &mut out);
    timers(scenario, check, &mut out);
    repairs(scenario, check, &mut out);
    priorities(scenario, check, &mut out);
    loads(scenario, check, &mut out);
    delayed_frames(scenario, check, &mut out);
    starts(scenario, &mut out);
    limits(scenario, check, &mut out);
    ratios(scenario, check, &mut out);
    recording(scenario, &mut out);
    late_events(scenario, &mut out);
    out
}

/// A short trial of a long scenario is not a mistake, but it is reported.
fn late_events(scenario: &Resolved, out: &mut Vec<Warning>) {
    // A change of both directions of a link counts once.
    let mut all: Vec<_> = Vec::new();
    for e in &scenario.events {
        let change = (e.at, e.link, core::mem::discriminant(&e.change));
        if !all.contains(&change) {
            all.push(change);
        }
    }
    let late = all.iter().filter(|(at, ..)| *at >= scenario.duration);
    let Some(first) = late.clone().map(|(at, ..)| *at).min() else { return };
    let come = match (late.count(), all.len()) {
        (1, 1) => "the change comes after the end of the run and never takes effect; it".to_owned(),
        (1, n) => format!("1 of {n} changes comes after the end of the run and never takes effect; it"),
        (late, n) => {
            format!("{late} of {n} changes come after the end of the run and never take effect; the first")
        }
    };
    let message = format!(
        "{come} is at {} s, the run ends at {} s",
        short(first.as_secs_f64()),
        short(scenario.duration.as_secs_f64())
    );
    push(out, "event-late", "event".into(), message);
}

fn push(out: &mut Vec<Warning>, code: &'static str, key: String, message: String) {
    out.push(Warning { code, key, message });
}

/// A direction of a link.
struct LinkDirection<'a> {
    /// Position of the link.
    index: usize,
    forward: bool,
    /// The path of its keys.
    path: String,
    config: &'a Direction,
    check: &'a DirectionCheck,
}

impl LinkDirection<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }
}

/// Both directions of all links, the forward one of each first.
fn directions<'a>(scenario: &'a Resolved, check: &'a Check) -> impl Iterator<Item = LinkDirection<'a>> {
    scenario.links.iter().zip(&check.links).enumerate().flat_map(|(index, (link, derived))| {
        let path = format!("links.{}", link.name);
        let reverse = format!("{path}.reverse");
        [
            LinkDirection { index, forward: true, path, config: &link.forward, check: &derived.forward },
            LinkDirection {
                index,
                forward: false,
                path: reverse,
                config: &link.reverse,
                check: &derived.reverse,
            },
        ]
    })
}

/// The path of a group's keys: those of a leg are in its chain.
fn path_of(scenario: &Resolved, group: &FlowGroup) -> String {
    let leg = scenario.flows.iter().find_map(|head| {
        let chain = head.chain()?;
        let place = chain.legs.iter().position(|&leg| scenario.flows[leg].name == group.name)?;
        Some((head, &scenario.gateways[chain.gateways[place]]))
    });
    leg.map_or_else(
        || format!("flows.{}", group.name),
        |(head, gateway)| format!("flows.{}.chain.legs.{}", head.name, gateway.name),
    )
}

/// A direction of a link that carries data, and the groups whose data it carries.
struct Carrier<'a> {
    /// The path of its keys.
    key: String,
    /// Its name in messages: that of the link, followed by "in reverse" for that direction.
    name: String,
    direction: &'a Direction,
    check: &'a DirectionCheck,
    groups: Vec<(&'a FlowGroup, &'a FlowCheck)>,
}

/// All directions of links that carry data.
fn carriers<'a>(scenario: &'a Resolved, check: &'a Check) -> impl Iterator<Item = Carrier<'a>> {
    directions(scenario, check).filter_map(|direction| {
        let all = scenario.flows.iter().zip(&check.flows);
        let sends =
            |f: &FlowGroup| f.path.contains(&direction.index) && f.sends_forward() == direction.forward;
        let groups: Vec<_> = all.filter(|(f, _)| sends(f)).collect();
        let in_reverse = if direction.forward { "" } else { " in reverse" };
        (!groups.is_empty()).then(|| Carrier {
            name: format!("{}{in_reverse}", scenario.links[direction.index].name),
            key: direction.path,
            direction: direction.config,
            check: direction.check,
            groups,
        })
    })
}

/// Links on which nothing can arrive, and runs without time.
fn dead_ends(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    if scenario.duration.is_zero() {
        push(
            out,
            "nothing-happens",
            "duration".into(),
            "a run of no length has no events: write \"100 s\"".into(),
        );
    }
    for direction in directions(scenario, check).filter(|direction| direction.check.flows > 0) {
        let (d, c) = (direction.config, direction.check);
        let changes = |change: fn(&Change) -> bool| {
            let own = |e: &&Event| {
                e.link == direction.index && e.forward == direction.forward && e.at < scenario.duration
            };
            scenario.events.iter().filter(own).any(|e| change(&e.change))
        };
        if !d.up && !changes(|c| matches!(c, Change::Up(true))) {
            let message = "the link is down for the whole run: nothing arrives; write true, or an event that brings it up";
            push(out, "nothing-arrives", direction.key("up"), message.into());
        }
        if c.loss >= 1.0 && !changes(|c| matches!(c, Change::Error(_))) {
            let message = "the channel loses every packet: nothing arrives; write a loss below 1";
            push(out, "nothing-arrives", direction.key("error"), message.into());
        }
        if c.fade.as_ref().is_some_and(|f| f.outage >= 1.0) {
            let message = "the signal is too weak for the most robust ModCod even under a clear sky: nothing arrives; write a \
                           higher es-n0, or a ModCod that needs less";
            push(out, "nothing-arrives", direction.key("fade.carrier.es-n0"), message.into());
        }
        let too_small = c.queue_packets.is_some_and(|n| n < 1.0) && matches!(d.queue.limit, Limit::Bytes(_));
        if too_small && d.rate.mean().is_some() && !changes(|c| matches!(c, Change::Limit(_))) {
            let message = format!(
                "the queue holds less than one packet of {} B: a packet that finds the link busy is dropped; write a limit of \
                 some packets",
                c.packet_bytes
            );
            push(out, "queue-none", direction.key("queue"), message);
        }
    }
}

/// Fades that change nothing in the run with its seed, and how many of the following seeds give a change.
fn unchanging_fades(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    let end = Instant::ZERO + scenario.duration;
    for direction in directions(scenario, check)
        .filter(|direction| direction.check.flows > 0 && !scenario.duration.is_zero())
    {
        let (link, name) =
            (&scenario.links[direction.index], if direction.forward { "forward" } else { "reverse" });
        // Too weak a signal has its own warning.
        if direction.check.fade.as_ref().is_none_or(|f| f.outage >= 1.0) {
            continue;
        }
        let changes = |seed: u64| {
            let Some(mut course) = direction.config.fade_course(seed, link, name) else { return false };
            let (mut rate, mut loss) = (None, 0.0);
            while course.next() < end {
                let start = course.next() == Instant::ZERO;
                match course.take() {
                    Change::Fade(p) if start => loss = p,
                    Change::Rate(r) if start => rate = Some(r),
                    // A fade that looked ahead without finding a change repeats its loss.
                    Change::Fade(p) if p == loss => {}
                    Change::Rate(r) if rate.as_ref() == Some(&r) => {}
                    _ => return true,
                }
            }
            false
        };
        if changes(scenario.seed) {
            continue;
        }
        let others = (1..=SKIES).filter(|i| changes(scenario.seed.wrapping_add(*i))).count();
        let message = format!(
            "with seed {} the fade changes nothing within the {} s of the run, and with {others} of the next {SKIES} seeds it \
             does: write a longer duration, one of those seeds, or a stronger fade",
            scenario.seed,
            short(scenario.duration.as_secs_f64())
        );
        push(out, "fade-still", direction.key("fade"), message);
    }
}

/// So many packets, such as "1 packet".
fn counted(packets: f64) -> String {
    format!("{} packet{}", short(packets), if packets == 1.0 { "" } else { "s" })
}

/// The beginning of a sentence about them.
fn packets_are(packets: f64) -> String {
    format!("{} {}", counted(packets), if packets == 1.0 { "is" } else { "are" })
}

fn queues(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for link in check.links.iter().filter(|l| l.forward.flows == 0) {
        push(out, "unused-link", format!("links.{}", link.name), "no flow crosses this link".into());
    }
    for Carrier { key, check: d, .. } in carriers(scenario, check) {
        let (Some(packets), Some(bdp), Some(full)) = (d.queue_packets, d.queue_bdp, d.bdp_packets) else {
            continue;
        };
        let key = format!("{key}.queue");
        if packets < 1.0 {
            continue;
        }
        if bdp < USUAL_QUEUE.0 {
            let Ok(in_phase) = utilization::clean_utilization(full, packets, 0.5) else { continue };
            let message = format!(
                "{} {} of the BDP: Reno flows that lose packets at the same time use {} of a loss-free link",
                packets_are(packets),
                short(bdp),
                percent(in_phase)
            );
            push(out, "queue-short", key, message);
        } else if bdp > USUAL_QUEUE.1 {
            let delay =
                d.queue_s.map_or_else(String::new, |s| format!(": it adds up to {} s of delay", short(s)));
            push(out, "queue-long", key, format!("{} {} BDP{delay}", packets_are(packets), short(bdp)));
        }
    }
}

/// Equal flows without any randomness in their RTT at a full queue: which of them loses packets, and keeps losing them, is
/// decided by the phase of their arrivals (Floyd and Jacobson 1991, "On Traffic Phase Effects in Packet-Switched Gateways").
fn phases(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for Carrier { key, name, direction, check: derived, groups } in carriers(scenario, check) {
        let (Some(rate), Some(room), Some(full)) =
            (derived.rate_packets_s, derived.queue_packets, derived.bdp_packets)
        else {
            continue;
        };
        let steady = |group: &FlowGroup| {
            let constant = |d: &Direction| d.orbit.is_none() && d.delay.constant().is_some();
            group
                .path
                .iter()
                .map(|&i| &scenario.links[i])
                .all(|l| constant(&l.forward) && constant(&l.reverse))
        };
        let greedy = |group: &FlowGroup| {
            let (Start::At(start) | Start::Uniform { from: start, .. }) = group.start;
            let sends = group.stop.is_none_or(|stop| stop > start);
            sends && group.transport == Transport::Tcp && group.app == App::BULK
        };
        let equal = |a: &FlowCheck, b: &FlowCheck| {
            a.packet_bytes == b.packet_bytes && (a.base_rtt_s - b.base_rtt_s).abs() * rate < 1.0
        };
        let candidates: Vec<_> = groups.into_iter().filter(|(g, _)| greedy(g) && steady(g)).collect();
        let alike = |of: &FlowCheck| -> u64 {
            candidates.iter().filter(|(_, c)| equal(of, c)).map(|(_, c)| u64::from(c.count)).sum()
        };
        let windows: f64 = candidates.iter().map(|(_, c)| f64::from(c.count) * c.window_segments).sum();
        let overflows = windows > room + full;
        let kind = direction.queue.discipline.kind();
        // Others drop before they are full, or at random.
        let drop_tail = kind.is_blind() || kind.serves_high_first();
        if !drop_tail || !overflows || !candidates.iter().any(|(_, c)| alike(c) > 1) {
            continue;
        }
        let message = format!(
            "flows of equal RTT and packet size fill this queue, and nothing in their RTT is random: the phase of their \
             arrivals decides which of them lose packets (Floyd and Jacobson 1991), not their congestion control; \
             give a link of their path before {name} a random delay, such as delay = {{ kind = \"uniform\", base = \
             \"0 ms\", jitter = \"{} ms\" }}",
            short((4e3 / rate * 10.0).ceil() / 10.0)
        );
        push(out, "phase-effects", format!("{key}.queue"), message);
    }
}

/// Queues that expect a reaction sooner than one RTT.
fn intervals(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for carrier in carriers(scenario, check) {
        let rtt = carrier.groups.iter().map(|(_, c)| c.base_rtt_s).fold(0.0, f64::max);
        let Some((key, time)) = carrier.direction.queue.discipline.round_trip() else { continue };
        if rtt > time.as_secs_f64() {
            let message = format!(
                "{} s is less than the longest RTT, {} s: it signals again before the sender can have reacted; write \
                 about that RTT, and a target of 5 to 10 % of it",
                short(time.as_secs_f64()),
                short(rtt)
            );
            push(out, "interval-short", format!("{}.queue.{key}", carrier.key), message);
        }
    }
}

/// Times of an endpoint and of its control that are shorter than the path is long.
fn timers(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for (group, flow) in scenario.flows.iter().zip(&check.flows) {
        if group.transport != Transport::Tcp || group.rate_leg().is_some() {
            continue;
        }
        let (rtt, rto) = (flow.base_rtt_s, &group.endpoint.rto);
        let (initial, most) = (rto.initial.as_secs_f64(), rto.max.as_secs_f64());
        // Without a handshake the sender knows the RTT from the start.
        let late = if most < rtt {
            Some(("rto-max", most, "every segment is"))
        } else if initial < rtt && group.handshake {
            Some(("initial-rto", initial, "each SYN is"))
        } else {
            None
        };
        if let Some((key, time, what)) = late {
            let message = format!(
                "{} s is less than the RTT, {} s: {what} sent again before an answer can have come; write more than that RTT",
                short(time),
                short(rtt)
            );
            push(out, "timer-short", format!("{}.endpoint.{key}", path_of(scenario, group)), message);
        }
        // Whatever its name, a control with such an option sends less while it measures.
        let options = serde_json::to_value(&group.cc).unwrap_or_default();
        let of = |key| options.get(key).and_then(serde_json::Value::as_f64).map(|time| (key, time));
        let shortest = ["min-rtt-window", "probe-rtt-interval"].into_iter().filter_map(of);
        let Some((key, time)) = shortest.min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        if time < FEW_RTTS * rtt {
            let message = format!(
                "{} s are {} RTTs: {} spends much of its time sending less to measure the RTT; write some tens of RTTs",
                short(time),
                short(time / rtt),
                flow.cc
            );
            push(out, "rtt-probing", format!("{}.cc.{key}", path_of(scenario, group)), message);
        }
    }
}

fn windows(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for Carrier { name, check: direction, groups, .. } in carriers(scenario, check) {
        let Some(rate) = direction.rate_packets_s else { continue };
        let (mut total, mut flows) = (0.0, Vec::new());
        // A flow limited by its application is not meant to fill the link.
        for (group, flow) in groups.into_iter().filter(|(f, _)| f.app.offered().is_none()) {
            let own = flow.bounds.window.unwrap_or(f64::INFINITY) * f64::from(flow.packet_bytes);
            total += own / f64::from(direction.packet_bytes.max(1)) * f64::from(flow.count);
            flows.push(group);
        }
        let [first, ..] = flows.as_slice() else { continue };
        if total < rate * 0.999 {
            let message = format!(
                "windows allow {} of the {} packets/s of link {name}: no congestion control can fill it",
                short(total),
                short(rate),
            );
            push(out, "window-short", format!("{}.rwnd", path_of(scenario, first)), message);
        }
    }
}

fn errors(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    let mut last: Option<(usize, &error::Config)> = None;
    for direction in directions(scenario, check) {
        let error = &direction.config.error;
        let error::Config::Ber(ber::Config { ber, ber_unit: ber::Unit::Bit, code: None, .. }) = error else {
            continue;
        };
        // Once for a link with the same model in both directions.
        if direction.check.loss < MUCH_LOSS
            || direction.check.flows == 0
            || last == Some((direction.index, error))
        {
            continue;
        }
        last = Some((direction.index, error));
        let message = format!(
            "a bit error rate of {ber:e} loses {} of packets of {} B: if {ber:e} of packets is meant, write \
             {{ kind = \"per\", p = {ber:e} }}; if it holds before decoding, the loss behind the decoder is far lower",
            percent(direction.check.loss),
            direction.check.packet_bytes
        );
        push(out, "ber-not-per", direction.key("error"), message);
    }
}

fn repairs(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for direction in directions(scenario, check) {
        let error = &direction.config.error;
        if direction.config.link_config().losses() != *error && *error != error::Config::NONE {
            let message = "the code's residual loss replaces it: leave one of them out";
            push(out, "error-replaced", direction.key("error"), message.into());
        }
        let Some(r) = direction.check.repair.as_ref().and_then(|r| r.repeats.as_ref()) else { continue };
        // Outstanding data while the link is full.
        if r.window_s.is_some_and(|s| s < 0.999 * 2.0 * direction.check.delay_s) {
            let message = format!(
                "the window of {} is sent in {} s and an acknowledgement takes longer: the link idles",
                counted(r.window_packets.into()),
                short(r.window_s.unwrap_or(0.0))
            );
            push(out, "arq-window-short", direction.key("arq.window"), message);
        }
    }
}

fn priorities(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for (flow, derived) in scenario.flows.iter().zip(&check.flows) {
        let Some(policy) = flow.cc.policy(&flow.endpoint.rules) else { continue };
        if flow.transport.sends_datagrams() || flow.rate_leg().is_some() {
            continue;
        }
        let probes_off = flow.endpoint.probes == ProbeNegotiation::Off;
        if policy.probes && probes_off {
            let message = format!(
                "{} relies on probes, and with \"off\" it sends none: what remains is its plain slow start and \
                 recovery; write probes = \"negotiate\"",
                derived.cc
            );
            push(out, "probes-off", format!("{}.endpoint.probes", path_of(scenario, flow)), message);
        }
        if !(policy.low_priority_data || policy.probes && !probes_off) {
            continue;
        }
        for &index in &flow.path {
            let link = &scenario.links[index];
            let direction = flow.data_direction(link);
            let blind = direction.queue.discipline.ignores_priority();
            if blind && direction.rate.mean().is_some() {
                let message = format!(
                    "{} of flows.{} sends segments of low priority, and this queue ignores priorities: they displace \
                     data",
                    derived.cc, derived.name
                );
                let suffix = suffix(flow);
                push(out, "priority-ignored", format!("links.{}{suffix}.queue", link.name), message);
            }
        }
    }
}

fn loads(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for Carrier { name, check: direction, groups, .. } in carriers(scenario, check) {
        let Some(rate) = direction.rate_bit_s else { continue };
        let (mut datagrams, mut all, mut keys) = (0.0, 0.0, Vec::new());
        for (group, flow) in groups {
            let Some(segments) = flow.bounds.application else { continue };
            let bits = segments * 8.0 * super::carried(group) * f64::from(flow.count);
            all += bits;
            if group.transport == Transport::Udp {
                datagrams += bits;
            }
            keys.push(format!("flows.{}.app", flow.name));
        }
        #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
        let rate = rate as f64;
        let Some(key) = keys.first() else { continue };
        let (what, load) = if datagrams > rate { ("datagrams", datagrams) } else { ("applications", all) };
        if load > rate * 1.0001 {
            let end = if datagrams > rate { "the rest is lost" } else { "the queue grows without bound" };
            let message = format!(
                "{what} send {} Mbit/s, headers included, more than the {} Mbit/s of link {name}: {end}",
                short(load / 1e6),
                short(rate / 1e6),
            );
            push(out, "overload", key.clone(), message);
        }
    }
}

/// Nagle's algorithm holds a short segment until everything before it is acknowledged (RFC 9293 §3.7.4): the last
/// segment of a frame, and so the frame, arrives a round-trip time late.
fn delayed_frames(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for (group, flow) in scenario.flows.iter().zip(&check.flows) {
        if group.transport.sends_datagrams() || !group.endpoint.nagle || !group.app.ends_short() {
            continue;
        }
        let message = format!(
            "Nagle's algorithm holds the last, short packet of each frame back until those before it are acknowledged, a \
             round-trip time of {} ms: write nagle = false there, as programs for live video do",
            short(1000.0 * flow.base_rtt_s)
        );
        push(out, "frames-held", format!("flows.{}.endpoint.nagle", flow.name), message);
    }
}

fn starts(scenario: &Resolved, out: &mut Vec<Warning>) {
    let instant = |start: Start| match start {
        Start::At(at) => Some(at),
        Start::Uniform { from, to } => (from == to).then_some(from),
    };
    // A leg starts when its gateway opens it.
    let own: Vec<&FlowGroup> = scenario.flows.iter().filter(|f| !f.is_leg()).collect();
    for (i, flow) in own.iter().enumerate() {
        let key = || format!("flows.{}.start", flow.name);
        let (earliest, at) = match flow.start {
            Start::At(at) => (at, instant(flow.start)),
            Start::Uniform { from, .. } => (from, instant(flow.start)),
        };
        if earliest >= scenario.duration && !scenario.duration.is_zero() {
            push(out, "late-start", key(), "the run ends before these flows start".into());
        }
        if flow.stop.is_some_and(|stop| stop <= earliest) {
            push(
                out,
                "early-stop",
                format!("flows.{}.stop", flow.name),
                "these flows stop before they start".into(),
            );
        }
        let Some(at) = at else { continue };
        let same = |f: &FlowGroup| f.path == flow.path && f.direction == flow.direction;
        let twin = own[..i].iter().find(|f| instant(f.start) == Some(at) && same(f));
        if flow.count > 1 || twin.is_some() {
            let what = match twin {
                Some(twin) if flow.count == 1 => format!("starts at the same instant as flows.{}", twin.name),
                _ => format!("{} flows start at the same instant", flow.count),
            };
            let message = format!(
                "{what}: identical flows stay synchronized and lose packets together; write {{ uniform = [\"0 s\", \"1 RTT\"] }}"
            );
            push(out, "same-start", key(), message);
        }
    }
}

/// What follows the name of a link in the keys of the direction that the group's data crosses.
fn suffix(group: &FlowGroup) -> &'static str {
    if group.sends_forward() { "" } else { ".reverse" }
}

/// The cap on the rate of a group's data if its acknowledgements exceed the capacity of their direction of a link.
fn ack_cap(group: &FlowGroup, link: &Link) -> Option<String> {
    let b = packets_per_ack(group, link);
    let (k, rate) = (ack_ratio(group, link)?, group.data_direction(link).rate.mean()?);
    (k > b).then(|| {
        format!(
            "k is {} (RFC 3449 §2) and each acknowledgement stands for {} packets, which caps the rate of data at {} \
             Mbit/s; a queue that filters acknowledgements raises this cap",
            short(k),
            short(b),
            short(rate.bytes_per_sec() * 8e-6 * b / k)
        )
    })
}

fn ratios(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for (i, link) in scenario.links.iter().enumerate() {
        let crossing = || {
            let both = scenario.flows.iter().zip(&check.flows);
            both.filter(|(f, _)| f.path.contains(&i) && f.transport == Transport::Tcp && f.sends_forward())
        };
        // These flows have the warning `return-link`, which names the cap as well.
        let limited = |c: &FlowCheck| matches!(&c.active, Active::ReturnLink { link: l } if *l == link.name);
        if crossing().any(|(_, c)| limited(c)) {
            continue;
        }
        let Some((group, _)) = crossing().max_by_key(|(_, c)| c.packet_bytes) else { continue };
        if let Some(cap) = ack_cap(group, link) {
            push(out, "ack-ratio", format!("links.{}.reverse.rate", link.name), cap);
        }
    }
}

fn limits(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for (group, flow) in scenario.flows.iter().zip(&check.flows) {
        if let Active::ReturnLink { link } = &flow.active {
            let cap = scenario.links.iter().find(|l| l.name == *link).and_then(|l| ack_cap(group, l));
            let (which, key) = if flow.reverse { ("forward", "rate") } else { ("reverse", "reverse.rate") };
            let message = format!(
                "acknowledgements on the {which} direction of {link} limit flows.{} to {} segments/s each",
                flow.name,
                short(flow.rate_segments_s.unwrap_or(0.0))
            );
            let message = cap.map_or_else(|| message.clone(), |cap| format!("{message}: {cap}"));
            push(out, "return-link", format!("links.{link}.{key}"), message);
        }
        let (Some(rate), true) = (flow.rate_segments_s, reno_class(&flow.cc)) else { continue };
        if group.app != App::BULK {
            continue;
        }
        // Without losses, or without a rate, there is no such steady state.
        if let Ok(steady) = loss::steady_run(flow.loss, rate) {
            if check.duration_s < steady && check.duration_s > 0.0 {
                let message = format!(
                    "{} s are too short for flows.{} to reach a steady state: a flow loses a segment every {} s, and \
                     50 losses take {} s; write duration = \"{} s\"",
                    short(check.duration_s),
                    flow.name,
                    short(steady / 50.0),
                    short(steady),
                    steady.ceil()
                );
                push(out, "short-for-loss", "duration".into(), message);
            }
        }
    }
}

fn recording(scenario: &Resolved, out: &mut Vec<Warning>) {
    let Some(sample) = scenario.record.sample else { return };
    let flows: f64 = scenario.flows.iter().map(|f| f64::from(f.count)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a handful of series")]
    let values =
        scenario.duration.as_secs_f64() / sample.as_secs_f64() * flows * scenario.record.series.len() as f64;
    if values > MANY_VALUES {
        let message = format!("about {} values will be recorded", short(values));
        push(out, "many-samples", "record.sample".into(), message);
    }
}
