//! What a scenario implies before it runs: bandwidth-delay products, closed-form bounds and which of them is active,
//! and warnings of common mistakes in experiments of this field.

mod chain;
mod display;
mod fade;
pub mod orbit;
mod repair;
mod share;
mod warn;

pub use chain::{ChainCheck, StationCheck};
pub use orbit::OrbitCheck;

use crate::memory::{self, Memory};
use crate::resolved::{App, Direction, FlowGroup, Link, Resolved, Transport};
pub use fade::{FadeCheck, ModCodCheck};
use repair::Repaired;
pub use repair::{RepairCheck, RepeatsCheck};
use serde::Serialize;
use share::Demand;
use skyhaul_analysis::{throughput, utilization, window};
use skyhaul_base::Rate;
use skyhaul_cc::CaGrowth;
use skyhaul_path::{Limit, QueueConfig};
use skyhaul_rate::REPORT_BYTES;
use std::collections::BTreeMap;

/// The results of `check`. Times are in seconds, rates in segments per second or bit/s as the names say; an absent
/// bound is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Title of the scenario.
    pub title: String,
    /// Hash of the resolved scenario.
    pub hash: String,
    /// Duration of the run.
    pub duration_s: f64,
    /// Seed.
    pub seed: u64,
    /// The memory that the run will need.
    pub memory: Memory,
    /// Links in the order of the scenario.
    pub links: Vec<LinkCheck>,
    /// Flow groups in the order of the scenario.
    pub flows: Vec<FlowCheck>,
    /// Warnings of likely mistakes.
    pub warnings: Vec<Warning>,
}

/// Both directions of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkCheck {
    /// Name.
    pub name: String,
    /// Direction of data, but for groups that send in reverse.
    pub forward: DirectionCheck,
    /// Direction of acknowledgements.
    pub reverse: DirectionCheck,
    /// The satellites of the link; `None` on links without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orbit: Option<OrbitCheck>,
    /// Normalised bandwidth ratio k (RFC 3449 §2) of the TCP group with the largest packets that sends forward on this
    /// link: the number of its packets sent in the transmission time of one acknowledgement in reverse. `None` without
    /// such a group, or if a rate is unlimited.
    pub ack_ratio: Option<f64>,
}

/// One direction of a link. Packet figures are for the largest packets on it: data forward, acknowledgements in
/// reverse, unless groups send in reverse.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionCheck {
    /// Rate; `None` is unlimited.
    pub rate_bit_s: Option<u64>,
    /// Rate in packets per second.
    pub rate_packets_s: Option<f64>,
    /// Size of these packets.
    pub packet_bytes: u32,
    /// Smallest propagation delay.
    pub delay_s: f64,
    /// Long-run fraction of these packets that the channel loses and nothing repairs.
    pub loss: f64,
    /// The repair of losses, and its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairCheck>,
    /// Kind of queue.
    pub queue_kind: &'static str,
    /// The options of this kind as they are in force, those included that follow from the path or the capacity:
    /// `"target": "5 ms"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queue_options: BTreeMap<&'static str, String>,
    /// Capacity of the queue; `None` is unlimited.
    pub queue_packets: Option<f64>,
    /// Time to drain a full queue.
    pub queue_s: Option<f64>,
    /// Capacity of the queue as a multiple of `bdp_packets`.
    pub queue_bdp: Option<f64>,
    /// Product of the rate and the longest base RTT of the flows that cross it.
    pub bdp_packets: Option<f64>,
    /// Number of flows on it.
    pub flows: u64,
    /// Predicted utilization.
    pub utilization: Option<f64>,
    /// The effect of rain or shadowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade: Option<FadeCheck>,
}

/// A flow group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowCheck {
    /// Name.
    pub name: String,
    /// Number of flows.
    pub count: u32,
    /// How its connections are split at gateways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainCheck>,
    /// Congestion control.
    pub cc: String,
    /// Size of a full packet, headers included.
    pub packet_bytes: u32,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// RTT without queueing: propagation, access delay, and the transmission of one packet and one acknowledgement on
    /// every link.
    pub base_rtt_s: f64,
    /// The largest window: the smaller of the receiver's and the sender's buffer.
    pub window_segments: f64,
    /// Probability that a channel on the path loses a packet and nothing repairs it.
    pub loss: f64,
    /// Its data crosses links in their reverse direction.
    #[serde(skip_serializing_if = "is_false")]
    pub reverse: bool,
    /// The link with the smallest rate for its data, and the BDP.
    pub bottleneck: Option<Bottleneck>,
    /// What limits one flow, in segments per second.
    pub bounds: Bounds,
    /// The active limit.
    pub active: Active,
    /// What the prediction leaves out.
    pub leaves_out: Vec<&'static str>,
    /// Predicted rate of one flow in segments per second, including lost ones.
    pub rate_segments_s: Option<f64>,
    /// Predicted goodput of the group in payload bit/s.
    pub goodput_bit_s: Option<f64>,
    /// Utilization if all flows lose packets at the same time: loss-free drop-tail link, Reno class only.
    pub in_phase_utilization: Option<f64>,
}

/// The slowest link on a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// Its name.
    pub link: String,
    /// Product of its rate and the base RTT of the group.
    pub bdp_packets: f64,
}

/// Upper bounds of the rate of one flow, in segments per second; `None` is no bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// The rate of the application.
    pub application: Option<f64>,
    /// Pages one after the other: the segments of a page over its shortest time, which is the handshake, the rounds in
    /// which slow start lets the window grow to the page, its transmission, and the pause after it.
    pub page: Option<f64>,
    /// Window over RTT.
    pub window: Option<f64>,
    /// Equal share of the slowest link in the direction of data.
    pub fair_share: Option<f64>,
    /// Random loss. For TCP by the full formula of Padhye et al., which describes Reno and bounds the Reno class
    /// only; for TFRC by its own equation, with losses as loss events; unknown for other datagrams.
    pub random_loss: Option<f64>,
    /// The share of acknowledgements on the slowest link in their direction.
    pub return_link: Option<f64>,
}

/// The active limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Active {
    /// The rate of the application.
    Application,
    /// The fair share of a forward link.
    FairShare {
        /// Its name.
        link: String,
    },
    /// No bound with a closed form.
    None,
    /// The time of a page.
    Page,
    /// Random loss.
    RandomLoss,
    /// Acknowledgements on a reverse link.
    ReturnLink {
        /// Its name.
        link: String,
    },
    /// The window.
    Window,
}

/// A warning of a likely mistake.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Warning {
    /// Short name, for filtering.
    pub code: &'static str,
    /// The key to look at.
    pub key: String,
    /// What it means.
    pub message: String,
}

/// Computes all results from a scenario.
#[must_use]
pub fn check(scenario: &Resolved) -> Check {
    let mut flows: Vec<FlowCheck> = scenario.flows.iter().map(|f| flow(scenario, f)).collect();
    let links = scenario.links.iter().enumerate().map(|(i, l)| link(scenario, &flows, i, l)).collect();
    let mut check = Check {
        title: scenario.title.clone(),
        hash: scenario.hash(),
        duration_s: scenario.duration.as_secs_f64(),
        seed: scenario.seed,
        memory: memory::estimate(scenario),
        links,
        flows: Vec::new(),
        warnings: Vec::new(),
    };
    predict(scenario, &mut check, &mut flows);
    check.flows = flows;
    check.warnings = warn::warnings(scenario, &check);
    check
}

/// Whether the loss formulas for Reno describe the steady state of this control.
fn reno_class(cc: &str) -> bool {
    matches!(cc, "tahoe" | "reno" | "newreno" | "sack" | "prr")
}

fn packet(f: &FlowGroup) -> u32 {
    f.endpoint.mss + f.endpoint.header
}

/// Whether the flow sends datagrams without congestion control.
fn udp(f: &FlowGroup) -> bool {
    f.transport == Transport::Udp
}

/// Bytes per segment in the unit of the application's rate: the whole packet for datagrams, the payload over TCP.
fn unit(f: &FlowGroup) -> u32 {
    if f.transport.sends_datagrams() { packet(f) } else { f.endpoint.mss }
}

/// Bytes on a link per full segment of payload: small transfers have a header, and packets of their handshake, for
/// less payload than a segment has.
fn carried(f: &FlowGroup) -> f64 {
    let Some(size) = f.app.transfer_size() else { return f64::from(packet(f)) };
    let (segment, header) = (f64::from(f.endpoint.mss), f64::from(f.endpoint.header));
    let size = size.max(1.0);
    // The SYN, and the acknowledgement of its answer.
    let opening = if f.handshake { 2.0 } else { 0.0 };
    segment * (size + header * ((size / segment).ceil() + opening)) / size
}

/// Upper bound of the rate of pages one after the other, in segments per second: RFC 5681 §3.1 for the rounds, with the
/// growth by RFC 3465 if the endpoint counts bytes.
fn page(f: &FlowGroup, rtt: f64, window: f64, slowest: Option<Rate>) -> Option<f64> {
    let (segments, pause) = f.app.page()?;
    let segments = segments as f64;
    let rules = &f.endpoint.rules;
    let growth = match rules.growth {
        CaGrowth::Abc => 2.0,
        CaGrowth::PerAck => 1.0 + 1.0 / f64::from(f.endpoint.delayed_ack.every.max(1)),
    };
    let (mut cwnd, mut sent, mut rounds) = (rules.initial_window.segments(f.endpoint.mss).max(1.0), 0.0, 0.0);
    // A window that fills the path no longer waits for acknowledgements.
    let full = slowest.map_or(f64::INFINITY, |r| r.bytes_per_sec() * rtt / f64::from(packet(f)));
    while sent < segments {
        // A control that starts otherwise than by slow start may send a page within one round trip.
        if !f.cc.starts_slowly() || cwnd >= full && full <= window {
            rounds += 1.0;
            break;
        }
        if cwnd >= window {
            rounds += ((segments - sent) / window.max(1.0)).ceil();
            break;
        }
        sent += cwnd;
        cwnd *= growth;
        rounds += 1.0;
    }
    let opening = if f.handshake { 1.0 } else { 0.0 };
    let transmission = slowest.map_or(0.0, |r| (segments - 1.0) * f64::from(packet(f)) / r.bytes_per_sec());
    // Transmission and rounds overlap.
    let transfer = (rounds * rtt).max(rtt + transmission);
    let all = opening * rtt + transfer + pause;
    (all > 0.0).then(|| segments / all)
}

/// What the prediction of a flow leaves out.
fn leaves_out(scenario: &Resolved, f: &FlowGroup, loss: f64) -> Vec<&'static str> {
    let links = || f.path.iter().map(|&i| &scenario.links[i]);
    let either = |has: fn(&Direction) -> bool| links().any(|l| has(&l.forward) || has(&l.reverse));
    let tcp = !f.transport.sends_datagrams();
    [
        (tcp && f.app == App::BULK, "slow start"),
        (f.app.page().is_some() && !f.cc.starts_slowly(), "how fast this control starts"),
        (tcp, "losses at full queues"),
        (tcp && loss > 0.0 && !bound_by_loss(&f.label()), "random loss"),
        (either(|d| d.fade.is_some()), "the fade: the rate is that under a clear sky"),
        (either(|d| d.orbit.is_some()), "moving satellites: the delay is the shortest"),
        (scenario.events.iter().any(|e| f.path.contains(&e.link)), "events"),
        (
            scenario.repair.iter().any(|r| r.repairs(f) && r.links.iter().any(|l| f.path.contains(l))),
            "the repair between gateways",
        ),
        (scenario.flows.len() > 1, "when the groups start and stop"),
    ]
    .into_iter()
    .filter_map(|(there, what)| there.then_some(what))
    .collect()
}

/// Size of the packets on the return path: acknowledgements, or reports.
fn ack(f: &FlowGroup) -> u32 {
    let report = f.transport.rate().map_or(0, |_| REPORT_BYTES as u32);
    (f.endpoint.header + report).max(1)
}

/// Size of the packets on the return path on a link that may compress headers.
fn ack_on(f: &FlowGroup, l: &Link) -> u32 {
    let compressed = f.ack_direction(l).ack_size.filter(|_| f.transport == Transport::Tcp);
    ack(f).min(compressed.unwrap_or(u32::MAX))
}

/// Upper limit of a flow by random loss, in segments per second.
fn random_loss(f: &FlowGroup, loss: f64, rtt: f64, t0: f64, window: f64) -> Option<f64> {
    let b = f64::from(f.endpoint.delayed_ack.every);
    match f.transport {
        Transport::Tcp => throughput::pftk(loss, rtt, t0, b, window).ok(),
        // With this option it knows which losses are those of the channel, and ignores them.
        Transport::Tfrc(c) if c.ignore_corruption => None,
        Transport::Tfrc(c) => {
            throughput::tfrc(loss, rtt, (4.0 * rtt).max(c.rto_floor.as_secs_f64()), 1.0).ok()
        }
        Transport::Udp | Transport::Ssvp(_) => None,
    }
    .filter(|_| loss > 0.0)
}

/// Whether [`random_loss`] describes the flow.
fn bound_by_loss(cc: &str) -> bool {
    reno_class(cc) || cc == "tfrc"
}

fn flow(scenario: &Resolved, f: &FlowGroup) -> FlowCheck {
    let path = || f.path.iter().map(|&i| &scenario.links[i]);
    let through = |rate: Option<Rate>, size: u32| rate.map_or(0.0, |r| f64::from(size) / r.bytes_per_sec());
    let serialisation: f64 = path()
        .map(|l| {
            through(f.data_direction(l).rate.mean(), packet(f))
                + through(f.ack_direction(l).rate.mean(), ack_on(f, l))
        })
        .sum();
    let rtt = scenario.propagation_rtt(f).as_secs_f64() + serialisation;
    let window = f.endpoint.receive_buffer.min(f.endpoint.send_buffer) / u64::from(f.endpoint.mss);
    #[expect(clippy::cast_precision_loss, reason = "a window is at most 2^30 bytes")]
    let window = window as f64;
    let loss =
        1.0 - path().map(|l| 1.0 - Repaired::new(f.data_direction(l), packet(f)).loss).product::<f64>();
    let slowest =
        path().filter_map(|l| Some((l, f.data_direction(l).rate.mean()?))).min_by_key(|(_, rate)| *rate);
    // The timer of a path with steady delays: its variance decays to zero, one tick remains.
    let t0 = (rtt + f.endpoint.rto.tick.as_secs_f64()).max(f.endpoint.rto.min.as_secs_f64());
    FlowCheck {
        name: f.name.clone(),
        count: f.count,
        chain: f.chain().map(|c| ChainCheck::new(scenario, c)),
        cc: f.label().into(),
        packet_bytes: packet(f),
        segment_bytes: f.endpoint.mss,
        base_rtt_s: rtt,
        window_segments: window,
        loss,
        reverse: !f.sends_forward(),
        bottleneck: slowest.map(|(l, rate)| Bottleneck {
            link: l.name.clone(),
            bdp_packets: rate.bytes_per_sec() * rtt / f64::from(packet(f)),
        }),
        bounds: Bounds {
            application: f.app.offered().map(|bits| bits / 8.0 / f64::from(unit(f))),
            page: page(f, rtt, window, slowest.map(|(_, rate)| rate)),
            window: window::window_limit(window, rtt)
                .ok()
                // Each transfer of its own has a window of its own.
                .filter(|x| x.is_finite() && !f.transport.sends_datagrams() && f.app.opens().is_none()),
            fair_share: None,
            random_loss: random_loss(f, loss, rtt, t0, window),
            return_link: None,
        },
        active: Active::None,
        leaves_out: leaves_out(scenario, f, loss),
        rate_segments_s: None,
        goodput_bit_s: None,
        in_phase_utilization: None,
    }
}

fn link(scenario: &Resolved, flows: &[FlowCheck], index: usize, l: &Link) -> LinkCheck {
    let crossing = || scenario.flows.iter().zip(flows).filter(|(f, _)| f.path.contains(&index));
    let rtt = crossing().map(|(_, c)| c.base_rtt_s).fold(0.0, f64::max);
    let count = crossing().map(|(f, _)| u64::from(f.count)).sum();
    let largest = |forward: bool| {
        let size = |f: &FlowGroup| if f.sends_forward() == forward { packet(f) } else { ack_on(f, l) };
        crossing().map(|(f, _)| size(f)).max().unwrap_or(0)
    };
    LinkCheck {
        name: l.name.clone(),
        forward: direction(&l.forward, largest(true), rtt, count),
        reverse: direction(&l.reverse, largest(false), rtt, count),
        orbit: l.forward.orbit.as_ref().map(|o| orbit::check(o, scenario.duration)),
        ack_ratio: crossing()
            .map(|(f, _)| f)
            .filter(|f| f.transport == Transport::Tcp && f.sends_forward())
            .max_by_key(|f| packet(f))
            .and_then(|f| ack_ratio(f, l)),
    }
}

/// k of RFC 3449 §2, for the direction in which the group sends.
fn ack_ratio(f: &FlowGroup, l: &Link) -> Option<f64> {
    let (there, back) = (f.data_direction(l).rate.mean()?, f.ack_direction(l).rate.mean()?);
    let sizes = (f64::from(packet(f)), f64::from(ack_on(f, l)));
    window::asymmetry(there.bytes_per_sec(), back.bytes_per_sec(), sizes.0, sizes.1).ok()
}

/// The number of packets that each acknowledgement stands for when its direction of a link is congested: infinity if
/// the queue there filters acknowledgements.
fn packets_per_ack(f: &FlowGroup, l: &Link) -> f64 {
    f64::from(f.endpoint.delayed_ack.every) / f.ack_direction(l).queue.discipline.share_of_acks()
}

/// The resources that data and acknowledgements of a group take on a link: 2i is the forward direction of link i,
/// 2i + 1 its reverse.
fn resources(f: &FlowGroup, link: usize) -> (usize, usize) {
    let back = usize::from(!f.sends_forward());
    (2 * link + back, 2 * link + 1 - back)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(b: &bool) -> bool {
    !b
}

fn direction(d: &Direction, size: u32, rtt: f64, flows: u64) -> DirectionCheck {
    let packet = f64::from(size.max(1));
    let rate_packets_s = d.rate.mean().map(|r| r.bytes_per_sec() / packet);
    let bdp_packets = rate_packets_s.map(|r| r * rtt);
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    let queue_packets = match d.queue.limit {
        Limit::Packets(n) => Some(f64::from(n)),
        Limit::Bytes(n) => Some(n as f64 / packet),
        Limit::Unlimited => None,
    };
    let queue_packets = queue_packets.map(|n| if d.queue.ns2_limit { (n - 1.0).max(0.0) } else { n });
    let repaired = Repaired::new(d, size);
    let over = |a: Option<f64>, b: Option<f64>| Some(a? / b.filter(|b| *b > 0.0)?);
    DirectionCheck {
        rate_bit_s: d.rate.mean().map(Rate::bits_per_sec),
        rate_packets_s,
        packet_bytes: size,
        delay_s: d.delay.base().as_secs_f64(),
        loss: repaired.loss,
        repair: repaired.check(d, size),
        queue_kind: d.queue.discipline.kind().name(),
        queue_options: queue_options(&d.queue),
        queue_packets,
        queue_s: over(queue_packets, rate_packets_s),
        queue_bdp: over(queue_packets, bdp_packets),
        bdp_packets,
        flows,
        utilization: None,
        fade: FadeCheck::of(d),
    }
}

/// The options of the discipline in force, as files write them.
#[must_use]
pub fn queue_options(queue: &QueueConfig) -> BTreeMap<&'static str, String> {
    let own = serde_json::to_value(queue.discipline).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let keys = queue.discipline.kind().keys().iter();
    let written = keys.filter_map(|key| Some((key.name, text(own.get(key.name)?))));
    let derived = queue.derived();
    let derived = derived.into_iter().map(|(key, n)| (key, format!("{} packets", display::short(n))));
    written.chain(derived).collect()
}

/// Shares the links among the flows and records the active limit of each.
fn predict(scenario: &Resolved, check: &mut Check, flows: &mut [FlowCheck]) {
    // Bytes per second of each resource.
    let whole: Vec<Option<f64>> = scenario
        .links
        .iter()
        .zip(&check.links)
        .flat_map(|(l, c)| [(&l.forward, &c.forward), (&l.reverse, &c.reverse)])
        .map(|(d, c)| d.rate.mean().map(|r| r.bytes_per_sec() * Repaired::new(d, c.packet_bytes).share()))
        .collect();
    // Datagrams do not yield: their share is subtracted before the rest is divided.
    let mut taken = vec![0.0; whole.len()];
    for (f, c) in scenario.flows.iter().zip(flows.iter()).filter(|(f, _)| udp(f)) {
        let bytes = c.bounds.application.unwrap_or(0.0) * f64::from(packet(f)) * f64::from(f.count);
        f.path.iter().for_each(|&i| taken[resources(f, i).0] += bytes);
    }
    let left = whole.iter().zip(&taken).map(|(c, t)| c.map(|c| (c - t).max(0.0)));
    let capacities: Vec<Option<f64>> = left.collect();
    let demands: Vec<Demand> = scenario
        .flows
        .iter()
        .zip(flows.iter())
        .map(|(f, c)| {
            let loss = c.bounds.random_loss.filter(|_| bound_by_loss(&c.cc));
            let own = [c.bounds.application, c.bounds.page, c.bounds.window, loss];
            let cap = own.into_iter().flatten().fold(f64::INFINITY, f64::min);
            // Reports come once per round-trip time, however many packets there are.
            let per_ack = |i: usize| match (f.transport, &scenario.links[i]) {
                (Transport::Tcp, l) => f64::from(ack_on(f, l)) / packets_per_ack(f, l),
                _ => 0.0,
            };
            let shared = if udp(f) { &[][..] } else { &f.path[..] };
            let uses = shared.iter().flat_map(|&i| {
                let (data, acks) = resources(f, i);
                [(data, carried(f)), (acks, per_ack(i))]
            });
            let uses = uses.filter(|(_, amount)| *amount > 0.0);
            Demand { count: f64::from(f.count), cap, uses: uses.collect() }
        })
        .collect();
    let shares = share::max_min(&capacities, &demands);

    // Equal shares, for the bounds: each resource divided among all that cross it.
    let load = |r: usize| -> f64 {
        let use_of = |d: &Demand| d.uses.iter().filter(|u| u.0 == r).map(|u| u.1 * d.count).sum::<f64>();
        demands.iter().map(use_of).sum()
    };
    let equal = |parity: usize, demand: &Demand| {
        let limits = demand.uses.iter().filter(|u| u.0 % 2 == parity);
        limits.filter_map(|u| Some(capacities[u.0]? / load(u.0))).reduce(f64::min)
    };
    for ((flow, demand), share) in flows.iter_mut().zip(&demands).zip(&shares) {
        let parity = usize::from(flow.reverse);
        flow.bounds.fair_share = equal(parity, demand);
        flow.bounds.return_link = equal(1 - parity, demand);
        flow.active = match share.limit {
            Some(r) if r % 2 == parity => Active::FairShare { link: scenario.links[r / 2].name.clone() },
            Some(r) => Active::ReturnLink { link: scenario.links[r / 2].name.clone() },
            None if !share.rate.is_finite() => Active::None,
            None if flow.bounds.application.is_some_and(|a| a <= share.rate) => Active::Application,
            None if flow.bounds.page.is_some_and(|p| p <= share.rate) => Active::Page,
            None if flow.bounds.window.is_some_and(|w| w <= share.rate) => Active::Window,
            None => Active::RandomLoss,
        };
        flow.rate_segments_s = share.rate.is_finite().then_some(share.rate);
        flow.goodput_bit_s = flow.rate_segments_s.map(|rate| {
            rate * (1.0 - flow.loss) * f64::from(flow.count) * f64::from(flow.segment_bytes) * 8.0
        });
    }
    // A queue that thins acknowledgements does so only once they have filled it: until then all of them are sent.
    let offered = |f: &FlowGroup, i: usize| match f.transport {
        Transport::Tcp => f64::from(ack_on(f, &scenario.links[i])) / f64::from(f.endpoint.delayed_ack.every),
        _ => 0.0,
    };
    let used = |r: usize| -> Option<f64> {
        let capacity = whole[r]?;
        let of = |((f, d), s): ((&FlowGroup, &Demand), &share::Share)| {
            let data: f64 = d.uses.iter().filter(|u| u.0 == r).map(|u| u.1).sum();
            let acks = !udp(f) && f.path.iter().any(|&i| resources(f, i).1 == r);
            let per_segment = if acks { offered(f, r / 2) } else { data };
            if per_segment > 0.0 { per_segment * d.count * s.rate } else { 0.0 }
        };
        let sent: f64 = scenario.flows.iter().zip(&demands).zip(&shares).map(of).sum();
        Some(((taken[r] + sent) / capacity).min(1.0))
    };
    for (i, link) in check.links.iter_mut().enumerate() {
        link.forward.utilization = used(2 * i);
        link.reverse.utilization = used(2 * i + 1);
    }
    for flow in flows.iter_mut().filter(|f| f.loss == 0.0 && reno_class(&f.cc)) {
        let Active::FairShare { link } = &flow.active else { continue };
        let Some(link) = check.links.iter().find(|l| l.name == *link) else { continue };
        let direction = if flow.reverse { &link.reverse } else { &link.forward };
        let (Some(bdp), Some(queue)) = (direction.bdp_packets, direction.queue_packets) else { continue };
        flow.in_phase_utilization = utilization::clean_utilization(bdp, queue, 0.5).ok();
    }
}

#[cfg(test)]
mod tests;
