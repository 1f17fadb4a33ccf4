//! Signs of life of other gateways. After an outage, the first packet that arrives from a gateway shows that the path works again.
//! Connections to it whose timers have backed off retransmit at once.

use super::{Conn, Host};
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::Flags;
use skyhaul_wire::tcp::Tcp;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Silence after which a packet is a sign that the path works again. Shorter ones are bridged by timers that have hardly backed off.
const SILENCE: Duration = Duration::from_secs(2);
/// Maximum number of gateways.
const MOST: usize = 4096;

/// When something has arrived from each gateway last.
#[derive(Debug, Default)]
pub(super) struct Heard(BTreeMap<NonZeroU32, Instant>);

impl Heard {
    /// Notes a packet; true: it is the first one after a silence.
    fn note(&mut self, now: Instant, gateway: NonZeroU32) -> bool {
        if self.0.len() >= MOST && !self.0.contains_key(&gateway) {
            self.0.clear();
        }
        self.0.insert(gateway, now).is_some_and(|last| now - last > SILENCE)
    }
}

impl Host {
    /// The gateway that has sent a segment of the connection in this slot, or of none, if one has.
    pub(super) fn sender_of(&self, slot: Option<u32>, tcp: &Tcp<'_>) -> Option<NonZeroU32> {
        if tcp.flags.has(Flags::SYN) {
            return tcp.options.gateway(self.config.probe_exid);
        }
        slot.and_then(|slot| self.at(slot)).and_then(Conn::peer_gateway)
    }
    /// A packet of this gateway has arrived, if it was one's.
    pub(super) fn hear(&mut self, now: Instant, gateway: Option<NonZeroU32>) {
        let Some(gateway) = gateway.filter(|g| self.heard.note(now, *g)) else { return };
        for slot in 0..self.slots.len() as u32 {
            if let Some(conn) = self.at_mut(slot).filter(|c| c.gateway == Some(gateway)) {
                if conn.retry(now) {
                    self.mark_ready(slot);
                }
            }
        }
    }
}
