//! When other gateways were last heard. After an outage, the first packet that arrives from a gateway shows that the path works again.
//! Connections to it whose timers have backed off retransmit at once.

use super::{Conn, Host};
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::Flags;
use skyhaul_wire::tcp::Tcp;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Silence after which a packet is a sign that the path works again. Timers that have hardly backed off bridge a shorter silence.
const SILENCE: Duration = Duration::from_secs(2);
/// Maximum number of gateways that are remembered.
const MOST: usize = 4096;

/// When the last packet has arrived from each gateway.
#[derive(Debug, Default)]
pub(super) struct Heard(BTreeMap<NonZeroU32, Instant>);

impl Heard {
    /// Notes a packet from a gateway; true: the packet is the first one after a silence.
    fn note(&mut self, now: Instant, gateway: NonZeroU32) -> bool {
        if self.0.len() >= MOST && !self.0.contains_key(&gateway) {
            self.0.clear();
        }
        self.0.insert(gateway, now).is_some_and(|last| now - last > SILENCE)
    }
}

impl Host {
    /// The gateway that has sent this segment, if one has: a SYN names its gateway, and the connection in `slot` knows the gateway of other
    /// segments.
    pub(super) fn sender_of(&self, slot: Option<u32>, tcp: &Tcp<'_>) -> Option<NonZeroU32> {
        if tcp.flags.has(Flags::SYN) {
            return tcp.options.gateway(self.config.probe_exid);
        }
        slot.and_then(|slot| self.at(slot)).and_then(Conn::peer_gateway)
    }
    /// Notes that a packet has arrived from `gateway`; `None`: it was sent by no gateway. After a silence, the connections to the
    /// gateway whose timers have backed off retransmit.
    pub(super) fn hear(&mut self, now: Instant, gateway: Option<NonZeroU32>) {
        let Some(gateway) = gateway.filter(|g| self.heard.note(now, *g)) else { return };
        for slot in 0..self.slots.len() as u32 {
            if let Some(conn) = self.at_mut(slot).filter(|c| c.gateway == Some(gateway)) {
                if conn.retry(now) {
                    self.mark_ready(slot);
                }
            }
        }
        // The last of these connections would be blamed for a panic that follows, but the packet may belong to none of them.
        self.at_work = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, HostConfig, Secret};
    use super::*;

    #[test]
    fn a_gateway_that_is_heard_again_leaves_no_connection_to_blame() {
        let ours = [10, 0, 0, 1];
        let mut host = Host::new(HostConfig::new(vec![ours.into()], Secret::fixed([1; 16])));
        let endpoint = Endpoint::host(skyhaul_cc::Config::by_name("newreno").unwrap());
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        host.connect(at(0), (ours, 0).into(), ([10, 0, 0, 2], 80).into(), &endpoint).unwrap();
        for ms in [0, 3000] {
            host.at_work = None;
            host.hear(at(ms), Some(NonZeroU32::MIN));
            assert_eq!(
                host.at_work, None,
                "a panic that follows would end a connection that has no part in it"
            );
        }
    }
}
