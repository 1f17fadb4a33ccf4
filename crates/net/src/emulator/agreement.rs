//! Compares the emulator's core with the simulator: the same packets arrive at the same times, and the others are
//! lost on the same links for the same reasons, while satellites move and the channel fades.

use super::crossing::Crossing;
use super::direction::{PacketOutcome, PathDirection};
use super::packet::{Buf, Class};
use skyhaul_base::Instant;
use skyhaul_scenario::{Document, Resolved};
use skyhaul_sim::{Place, Sighting, Tap};
use skyhaul_trace::{Event, Recorder};
use skyhaul_wire::Plan;
use std::collections::BTreeMap;

/// When the packet arrived, or why it was lost.
type End = Result<Instant, &'static str>;

/// A packet that the simulator sent.
#[derive(Debug)]
struct SimulatedPacket {
    at: Instant,
    backward: bool,
    size: u32,
    /// `None` while it is in flight.
    end: Option<End>,
}

/// Records whether each packet is lost and when it arrives, and how often satellites and weather change a link.
#[derive(Debug, Default)]
struct PacketLog {
    size: u32,
    sent: Vec<SimulatedPacket>,
    on_the_way: BTreeMap<u32, usize>,
    handovers: u32,
    changes: u32,
}

impl Recorder for PacketLog {
    fn record(&mut self, _: Instant, event: &Event) {
        match event {
            Event::Sent { packet, .. } => self.size = packet.size,
            Event::Handover { .. } => self.handovers += 1,
            Event::LinkChanged { .. } => self.changes += 1,
            _ => {}
        }
    }
}

impl Tap for PacketLog {
    const PACKETS: bool = true;

    fn packet(&mut self, now: Instant, seen: &Sighting<'_>) {
        let end = match seen.place {
            Place::Sent => {
                self.on_the_way.insert(seen.key, self.sent.len());
                self.sent.push(SimulatedPacket {
                    at: now,
                    backward: seen.backward,
                    size: self.size,
                    end: None,
                });
                return;
            }
            Place::Arrived => Ok(now),
            Place::Lost { cause, .. } => Err(cause.name()),
            Place::Entered { .. } | Place::Left { .. } | Place::Copied { .. } => return,
        };
        let number = self.on_the_way.remove(&seen.key).expect("it was sent");
        self.sent[number].end = Some(end);
    }
}

/// Arrival or loss of one direction's packets on the emulator's links.
fn emulated(scenario: &Resolved, sent: &[SimulatedPacket], forward: bool) -> Vec<Option<End>> {
    let mut direction =
        PathDirection::new(scenario, Crossing::All(&scenario.flows[0]), forward, scenario.seed).unwrap();
    let mut ends = vec![None; sent.len()];
    let mut out = |p: Buf, outcome: PacketOutcome<'_>| {
        let number = p.data()[..4].try_into().map(u32::from_be_bytes).expect("four bytes") as usize;
        assert_eq!(ends[number], None, "packet {number} has two outcomes");
        ends[number] = Some(match outcome {
            PacketOutcome::Through(at) => Ok(at),
            PacketOutcome::Lost(_, why) => Err(why.name()),
        });
    };
    let class = Class { dscp: 0, ecn: 0, flow: 1, pure_ack: false, link_scope: false, ports: None };
    for (number, packet) in sent.iter().enumerate().filter(|(_, s)| s.backward != forward) {
        let mut bytes = vec![0; 1500];
        bytes[..4].copy_from_slice(&(number as u32).to_be_bytes());
        direction.advance(packet.at, &mut out);
        direction.enter(packet.at, Buf::new(bytes, packet.size as usize, class, Plan::LowerEffort), &mut out);
    }
    direction.advance(Instant::ZERO + scenario.duration, &mut out);
    ends
}

/// A transfer over a link in low Earth orbit and a terrestrial link behind it. `switch`: keys of the orbit.
fn agree(fade: &str, switch: &str, seed: u64) -> PacketLog {
    let text = format!(
        "duration = \"90 s\"\nseed = {seed}\n\
         [links.ground]\nrate = \"100 Mbit/s\"\ndelay = \"10 ms\"\n\
         [links.sat]\nrate = \"8 Mbit/s\"\nqueue = \"60 packets\"\nreverse = {{ rate = \"2 Mbit/s\" }}\nfade = {fade}\n\
         [links.sat.orbit]\nfrom = \"Goonhilly\"\nto = \"London\"\nconstellation = \"leo550\"\n{switch}\n\
         [flows.bulk]\npath = [\"ground\", \"sat\"]\ncc = \"cubic\"\nendpoint = \"modern\"\n"
    );
    let scenario = Document::parse("sky.toml", &text, &skyhaul_scenario::no_files).unwrap();
    let scenario = scenario.resolve().unwrap_or_else(|e| panic!("{e}"));
    let mut log = PacketLog::default();
    skyhaul_sim::run(&scenario, seed, &mut log).expect("runs");
    let ways = [emulated(&scenario, &log.sent, true), emulated(&scenario, &log.sent, false)];
    for (number, packet) in log.sent.iter().enumerate() {
        let there = ways[usize::from(packet.backward)][number];
        assert_eq!(there, packet.end, "packet {number}, {packet:?}");
    }
    log
}

fn lost(w: &PacketLog, why: &str) -> usize {
    w.sent.iter().filter(|s| s.end == Some(Err(why))).count()
}

/// Alternating line of sight and shadow.
const TREES: &str = "{ kind = \"shadowing\", carrier = { es-n0 = \"9 dB\" }, states = [\
                 { name = \"good\", mean = \"3 s\" }, \
                 { name = \"bad\", mean = \"967 ms\", attenuation = \"8 dB\", deviation = \"3 dB\" }] }";

#[test]
fn packets_arrive_when_they_do_in_the_simulator_while_satellites_move_in_the_rain() {
    // A climate of downpours, so that 90 seconds contain some of everything.
    let rain = "{ kind = \"rain\", carrier = { es-n0 = \"9 dB\", modcod = \"QPSK 1/2\" }, m = 1.5, sigma = 0.6, \
                rain-probability = 0.9, beta = \"0.05 /s\" }";
    let hard = agree(rain, "switch = \"hard\"", 3);
    assert!(hard.handovers >= 2, "{} handovers", hard.handovers);
    // Only 4 ms of data are in flight, so that a handover loses just a few packets.
    let (errors, cut) = (lost(&hard, "error"), lost(&hard, "link-down"));
    assert!(errors > 10 && cut > 0, "{errors} lost by the channel, {cut} by handovers");
}

#[test]
fn packets_arrive_when_they_do_in_the_simulator_while_satellites_move_behind_trees() {
    let soft = agree(TREES, "switch = \"soft\"", 4);
    assert!(
        soft.handovers >= 2 && soft.changes > 900,
        "{} handovers, {} changes",
        soft.handovers,
        soft.changes
    );
    assert!(lost(&soft, "error") > 10 && lost(&soft, "full") > 0 && lost(&soft, "link-down") == 0);
}

#[test]
fn packets_arrive_when_they_do_in_the_simulator_by_the_first_of_two_satellites() {
    let both = agree(TREES, "diversity = \"both\"", 5);
    assert!(both.handovers >= 2, "{} handovers", both.handovers);
    let through = both.sent.iter().filter(|s| matches!(s.end, Some(Ok(_)))).count();
    assert!(
        through > 10_000 && lost(&both, "full") > 0,
        "{through} arrived, {} found the queue full",
        lost(&both, "full")
    );
}
