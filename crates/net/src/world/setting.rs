//! What a scenario needs to run in real time: namespaces, links between them, and flows with their times and ports.

use super::World;
use super::error::{Unsupported, WorldError};
use crate::app::{ArrivalLog, Session};
use crate::device::tun::TunConfig;
use crate::device::{Namespace, ipv6};
use crate::emulator::{self, Crossing, Emulation, End, Options};
use crate::error::NetError;
use skyhaul_apps::{Config as Application, HEADER, Start as Begin, Streams};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::Config as Control;
use skyhaul_scenario::resolved::{FlowGroup, Resolved, Start};

/// The receiver's port for the first flow group; the others follow.
pub(super) const FIRST_PORT: u16 = 5201;
/// Maximum number of groups: the last one's port is below those chosen for senders.
const MOST_GROUPS: usize = 20_000;
/// Minimum MTU of a link with IPv4 (RFC 791 §3.2), and maximum MTU of a TUN device, bytes.
const MTUS: std::ops::RangeInclusive<u32> = 68..=65_535;
/// Minimum MTU of a device with IPv6 addresses, such as those of links (RFC 8200 §5), bytes.
const LEAST_LINK_MTU: u16 = 1280;
/// Default sampling interval of flows.
const USUAL_SAMPLE: Duration = Duration::from_millis(100);

/// A flow of the scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow<'a> {
    pub(super) group: &'a FlowGroup,
    /// The receiver's port.
    pub(super) port: u16,
    /// Index within the group.
    pub(super) index: u32,
    seed: u64,
}

impl Flow<'_> {
    /// Whether it sends datagrams.
    pub(super) fn is_udp(&self) -> bool {
        self.group.transport.sends_datagrams()
    }
    /// Its workload, with the random streams of the simulator; the scenario's time begins at `zero`.
    pub(super) fn session(&self, zero: Instant) -> Session {
        let Self { group, index, seed, .. } = *self;
        let streams = Streams::of(seed, format!("flows.{}[{index}]", group.name));
        let over = group.transport.for_apps(group.endpoint.mss);
        let begins = self.begins(zero);
        let stops = group.stop.map_or(Instant::MAX, |d| zero + d);
        let app = self.app(zero).build(&Begin { now: begins, over, streams: &streams });
        Session::new(app, (begins, stops), group.endpoint.header)
    }
    /// Its application, with the time at which a viewer starts counting on the clock on which the scenario begins at `zero`.
    fn app(&self, zero: Instant) -> Application {
        let mut app = self.group.app.clone();
        if let Application::Video(film) = &mut app {
            film.viewer.warm = zero + film.viewer.warm - Instant::ZERO;
        }
        app
    }
    /// Whether a viewer needs the arrivals at the receiver.
    pub(super) fn is_watched(&self) -> bool {
        self.group.app.is_watched()
    }
    /// When it starts, on a clock where the scenario's time begins at `zero`.
    pub(super) fn begins(&self, zero: Instant) -> Instant {
        zero + self.start()
    }
    /// Its start time, as drawn by the simulator.
    fn start(&self) -> Duration {
        match self.group.start {
            Start::At(at) => at,
            Start::Uniform { from, to } => {
                let name = format!("flows.{}[{}].start", self.group.name, self.index);
                from + Rng::stream(self.seed, &name).uniform(to.saturating_sub(from))
            }
        }
    }
}

/// Size of the longest packets of a group, as in the simulation, bytes.
pub(super) fn packet(group: &FlowGroup) -> u32 {
    group.endpoint.mss + group.endpoint.header
}

/// Everything that a run in real time needs.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    pub(super) scenario: &'a Resolved,
    pub(super) seed: u64,
    /// Namespaces of the senders and of the receivers.
    pub(super) client: Namespace,
    pub(super) server: Namespace,
    /// Longest packet, bytes.
    pub(super) mtu: u16,
    /// All flows: groups in the order of their names, within a group by index.
    pub(super) flows: Vec<Flow<'a>>,
    /// Sampling interval of flows.
    pub(super) every: Duration,
}

/// Refuses features of a flow group that a real network cannot provide.
fn check(group: &FlowGroup, world: &World) -> Result<(), Unsupported> {
    let ours = !matches!(world, World::Kernel(_));
    if group.role.is_some() {
        return Err(Unsupported::Chain);
    }
    if !group.sends_forward() {
        return Err(Unsupported::Reverse);
    }
    let ours_over_tcp = *world == World::Ours && !group.transport.sends_datagrams();
    if group.dscp != 0 && !ours_over_tcp {
        return Err(Unsupported::Dscp);
    }
    if group.transport.rate().is_some() && *world != World::Ours {
        return Err(Unsupported::OursOnly { name: group.transport.name() });
    }
    if group.transport.rate().is_some_and(|r| r.asks_an_oracle()) {
        return Err(Unsupported::RateOracle);
    }
    if group.transport.sends_datagrams() {
        if group.endpoint.mss < HEADER as u32 {
            return Err(Unsupported::ShortDatagram { least: HEADER as u32 + group.endpoint.header });
        }
    } else if !MTUS.contains(&packet(group)) {
        return Err(Unsupported::Packet { bytes: packet(group) });
    } else if let (Control::User(own), true) = (&group.cc, ours) {
        return Err(Unsupported::UsersControl { name: own.control.to_string() });
    } else if group.endpoint.loss_classifier.is_oracle() && ours {
        return Err(Unsupported::Oracle);
    }
    Ok(())
}

impl<'a> Setting<'a> {
    /// # Errors
    /// If a real network cannot do what the scenario asks for, or privileges are missing.
    pub(super) fn new(scenario: &'a Resolved, seed: u64, world: &World) -> Result<Self, WorldError> {
        let refuse = |g: &FlowGroup, why| WorldError::Unsupported { flow: g.name.clone(), why };
        let (mut flows, mut longest) = (Vec::new(), *MTUS.start());
        for (group, port) in scenario.flows.iter().zip(FIRST_PORT..) {
            check(group, world).map_err(|why| refuse(group, why))?;
            if scenario.repair.iter().any(|r| r.links.iter().any(|l| group.path.contains(l))) {
                return Err(refuse(group, Unsupported::Repair));
            }
            if usize::from(port - FIRST_PORT) >= MOST_GROUPS {
                return Err(refuse(group, Unsupported::TooManyGroups { most: MOST_GROUPS }));
            }
            longest = longest.max(packet(group));
            flows.extend((0..group.count).map(|index| Flow { group, port, index, seed }));
        }
        Ok(Self {
            scenario,
            seed,
            client: Namespace::new()?,
            server: Namespace::new()?,
            mtu: u16::try_from(longest).unwrap_or(u16::MAX),
            flows,
            every: scenario.record.sample.unwrap_or(USUAL_SAMPLE),
        })
    }

    /// MTU of the links' devices, which must accept all packets of the stacks.
    pub(super) fn link_mtu(&self) -> u16 {
        self.mtu.max(LEAST_LINK_MTU)
    }
    /// The arrivals that receivers must log.
    pub(super) fn watched(&self) -> ArrivalLog {
        let mut watched = ArrivalLog::default();
        self.groups().filter(|(group, _)| group.app.is_watched()).for_each(|(_, port)| watched.expect(port));
        watched
    }
    /// The groups with their ports.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&'a FlowGroup, u16)> {
        self.scenario.flows.iter().zip(FIRST_PORT..)
    }
    /// The ends of the links in the two namespaces, on devices called `link`.
    pub(super) fn ends(&self) -> Result<[End; 2], NetError> {
        let end = |ns: &Namespace, client| {
            // Nothing here needs IPv6, which may be off.
            let v6 = ns.within(ipv6::is_on)?;
            let config = TunConfig {
                name: Some("link".into()),
                addresses: emulator::addresses(client)
                    .into_iter()
                    .filter(|(a, _)| v6 || a.is_ipv4())
                    .collect(),
                mtu: self.link_mtu(),
                offload: false,
            };
            End::open(ns, &config)
        };
        Ok([end(&self.client, true)?, end(&self.server, false)?])
    }
    /// Connects the ends by the links: the scenario's time begins.
    pub(super) fn emulate(&self, ends: [End; 2]) -> Result<Emulation, NetError> {
        let crossing = Crossing::ByPort { groups: &self.scenario.flows, first: FIRST_PORT };
        let options = Options { seed: self.seed, ..Options::default() };
        Emulation::start(self.scenario, crossing, ends, &options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_scenario::Document;

    fn group(flow: &str) -> FlowGroup {
        let text = format!(
            "duration = \"1 s\"\n[links.sat]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n[flows.a]\npath = [\"sat\"]\n{flow}\n"
        );
        let d = Document::parse("t.toml", &text, &skyhaul_scenario::no_files).unwrap();
        d.resolve().unwrap_or_else(|e| panic!("{e}")).flows.remove(0)
    }

    #[test]
    fn what_a_wire_cannot_do_is_refused_and_said() {
        let kernel = World::Kernel("reno".into());
        let checked = |flow: &str, ours| {
            check(&group(flow), if ours { &World::Ours } else { &kernel }).map_err(|e| e.to_string())
        };
        assert_eq!(checked("transport = \"tfrc\"", true), Ok(()));
        assert!(checked("chain = { kind = \"e2e\" }", true).unwrap_err().contains("leave out `chain`"));
        assert!(checked("direction = \"reverse\"", true).unwrap_err().contains("simulated only"));
        assert!(checked("direction = \"forward\"\nclose = true", false).is_ok());
        let marked = "dscp = \"EF\"";
        assert_eq!(checked(marked, true), Ok(()));
        assert!(checked(marked, false).unwrap_err().contains("leave out `dscp`"));
        assert!(check(&group(marked), &World::OursToKernel).is_err());
        assert!(checked(&format!("{marked}\ntransport = \"tfrc\""), true).is_err());
        let e = checked("transport = \"tfrc\"", false).unwrap_err();
        assert!(e.contains("sim and wire"), "{e}");
        assert!(check(&group("transport = \"ssvp\""), &World::OursToKernel).is_err());
        let e = checked("transport = { kind = \"tfrc\", ignore-corruption = true }", true).unwrap_err();
        assert!(e.contains("only the simulator"), "{e}");
        assert_eq!(checked("app = { kind = \"pages\", segments = 3 }", true), Ok(()));
        let udp = |bytes: u32| {
            format!(
                "transport = \"udp\"\napp = {{ kind = \"cbr\", rate = \"8 kbit/s\", packet = \"{bytes} B\" }}"
            )
        };
        assert_eq!(checked(&udp(44), true), Ok(()));
        let e = checked(&udp(43), true).unwrap_err();
        assert!(e.contains("packet = \"44 B\""), "{e}");
        let e = checked("cc = \"user:mine\"", true).unwrap_err();
        assert!(e.contains("\"mine\""), "{e}");
        assert_eq!(checked("cc = \"user:mine\"", false), Ok(()), "the kernel has its own");
        let e = checked("endpoint = { loss-classifier = \"oracle\" }", true).unwrap_err();
        assert!(e.contains("only the simulator"), "{e}");
        assert_eq!(checked("endpoint = { loss-classifier = \"spike\" }", true), Ok(()));
        assert_eq!(
            checked("endpoint = { loss-classifier = \"oracle\" }", false),
            Ok(()),
            "the kernel knows no such thing"
        );
        let e = checked("endpoint = { mss = \"10 B\", header = \"40 B\" }", true).unwrap_err();
        assert!(e.contains("50 bytes"), "{e}");
    }
}
