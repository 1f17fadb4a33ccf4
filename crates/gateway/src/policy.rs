//! The choice of transport settings with which a connection goes over the link.

use crate::config::{Config, low_priority, low_priority_data};
use crate::evidence::{Arm, Mode};
use crate::priority::Trust;
use skyhaul_base::Instant;
use skyhaul_net::host::Endpoint;
use std::net::SocketAddr;
use std::num::NonZeroU32;

/// Numbers of the endpoints of a host ([`skyhaul_net::host::Transparent::admit`]).
const SATELLITE: u8 = 0;
const FALLBACK: u8 = 1;
const SECOND_ARM: u8 = 2;

/// The gateway at the other end of a connection that is about to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerGateway {
    /// The handshake, or an earlier connection to the server, has named this one.
    Gateway(NonZeroU32),
    /// There is none: the handshake will not agree on probes.
    Nobody,
    /// It is not known whether there is one.
    Unknown,
}

/// The choice of an endpoint for each connection.
#[derive(Clone, Debug)]
pub(crate) struct EndpointPolicy {
    config: Config,
    /// Whether the endpoints of `[satellite]` and of the second arm need a test of the path for low priority.
    low: [bool; 2],
    /// The same for their data alone: it has low priority even if nobody answers probes.
    low_data: [bool; 2],
    trust: Option<Trust>,
}

impl EndpointPolicy {
    pub(crate) fn new(config: &Config) -> Self {
        let both = |sends: fn(&Endpoint) -> bool| {
            [sends(&config.endpoint), config.other.as_ref().is_some_and(sends)]
        };
        Self {
            config: config.clone(),
            low: both(low_priority),
            low_data: both(low_priority_data),
            trust: None,
        }
    }
    /// Switches to another configuration.
    pub(crate) fn reconfigure(&mut self, config: &Config) {
        if let Some(trust) = &self.trust {
            trust.reconfigure(config.fallback.cc.name());
        }
        *self = Self { trust: self.trust.take(), ..Self::new(config) };
    }
    /// From now on, low-priority packets are sent only on paths that these tests trust.
    pub(crate) fn test_with(&mut self, trust: Trust) {
        self.trust = Some(trust);
    }
    pub(crate) fn trust(&self) -> Option<&Trust> {
        self.trust.as_ref()
    }
    /// The endpoints that a host offers beside that of `[satellite]`, in the order of their numbers.
    pub(crate) fn others(&self) -> Vec<Endpoint> {
        let other = self.config.other.as_ref().unwrap_or(&self.config.endpoint);
        vec![self.config.fallback.clone(), other.clone()]
    }
    pub(crate) fn endpoint(&self, chosen: u8) -> &Endpoint {
        match chosen {
            FALLBACK => &self.config.fallback,
            SECOND_ARM => self.config.other.as_ref().unwrap_or(&self.config.endpoint),
            _ => &self.config.endpoint,
        }
    }
    pub(crate) fn is_fallback(chosen: u8) -> bool {
        chosen == FALLBACK
    }
    /// The number of the endpoint of a new connection, whose other end is at `peer`.
    pub(crate) fn choose(
        &self,
        now: Instant,
        client: SocketAddr,
        server: SocketAddr,
        peer: PeerGateway,
    ) -> u8 {
        let e = &self.config.evidence;
        let second =
            e.mode == Mode::Ab && self.config.other.is_some() && Arm::of(e, client, server) == Arm::Second;
        let trusted = match (&self.trust, peer) {
            (None, _) => true,
            (Some(trust), PeerGateway::Gateway(g)) => trust.allows(now, g),
            (Some(_), PeerGateway::Nobody | PeerGateway::Unknown) => false,
        };
        let [satellite, other] = if peer == PeerGateway::Nobody { self.low_data } else { self.low };
        let needs_trust = if second { other } else { satellite };
        match (trusted || !needs_trust, second) {
            (false, _) => FALLBACK,
            (true, true) => SECOND_ARM,
            (true, false) => SATELLITE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::{Counts, Finding, Verdict};
    use skyhaul_base::Duration;

    fn policy(more: &str) -> EndpointPolicy {
        let text = format!("[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n{more}");
        EndpointPolicy::new(&Config::parse("g.toml", &text).unwrap())
    }

    #[test]
    fn probes_need_a_path_that_is_trusted() {
        let at = |n: u8| SocketAddr::from(([192, 0, 2, n], 80));
        let mut t = policy("cc = \"peach\"\nfallback-cc = \"hybla\"\n");
        let g = NonZeroU32::MIN;
        let of = |t: &EndpointPolicy, peer| t.endpoint(t.choose(Instant::ZERO, at(1), at(2), peer)).cc.name();
        assert_eq!(of(&t, PeerGateway::Gateway(g)), "peach", "without a test");
        let trust = Trust::new(Duration::from_secs(9), "hybla".into());
        t.test_with(trust.clone());
        assert_eq!(of(&t, PeerGateway::Gateway(g)), "hybla");
        assert_eq!(of(&t, PeerGateway::Unknown), "hybla");
        assert_eq!(of(&t, PeerGateway::Nobody), "peach", "nobody will answer its probes");
        let finding = |verdict| Finding { verdict, why: None, counts: Counts::default() };
        trust.found(Instant::ZERO, g, finding(Verdict::Honoured));
        assert_eq!(of(&t, PeerGateway::Gateway(g)), "peach");
        trust.found(Instant::ZERO, g, finding(Verdict::Ignored));
        assert_eq!(of(&t, PeerGateway::Gateway(g)), "hybla");
        for (cc, why) in [("bbr", "it sends none"), ("hark", "it finds out by itself")] {
            let mut other = policy(&format!("cc = \"{cc}\"\n"));
            other.test_with(trust.clone());
            assert_eq!(of(&other, PeerGateway::Unknown), cc, "{why}");
        }
        let mut data = policy("cc = \"fast-start\"\nfallback-cc = \"hybla\"\n");
        assert_eq!(of(&data, PeerGateway::Nobody), "fast-start", "without a test");
        data.test_with(trust);
        assert_eq!(
            of(&data, PeerGateway::Nobody),
            "hybla",
            "its data has low priority whatever the peer agrees on"
        );
    }

    #[test]
    fn the_second_arm_has_its_own_control() {
        let t = policy("cc = \"bbr\"\n[evidence]\nmode = \"ab\"\n[evidence.other]\ncc = \"hybla\"\n");
        let server = SocketAddr::from(([192, 0, 2, 1], 80));
        let names: Vec<_> = (0..1000_u16)
            .map(|n| {
                let client = SocketAddr::from(([10, 0, 0, 1], n));
                let chosen = t.choose(Instant::ZERO, client, server, PeerGateway::Nobody);
                let second = Arm::of(&t.config.evidence, client, server) == Arm::Second;
                assert_eq!(chosen == SECOND_ARM, second);
                t.endpoint(chosen).cc.name()
            })
            .collect();
        let bbr = names.iter().filter(|n| **n == "bbr").count();
        assert!((400..600).contains(&bbr) && names.iter().all(|n| ["bbr", "hybla"].contains(n)), "{bbr}");
    }
}
