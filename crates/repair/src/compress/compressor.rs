//! The end that compresses.

use super::header::{Layout, Profile, Reference};
use super::{COMPRESSED, CONTEXTS, INSTALLS, REFERENCES};
use skyhaul_base::hash::Fnv;
use skyhaul_base::{Duration, Instant};
use std::collections::BTreeMap;

/// After this time a reference is replaced, so that differences stay short.
const REFRESH: Duration = Duration::from_secs(1);
/// Time in which a reference is acknowledged, or another one is tried.
const PATIENCE: Duration = Duration::from_secs(2);
/// A context is taken for another flow after this time without a packet.
const IDLE: Duration = Duration::from_secs(1);
/// So many packets in a row that differ from their reference too much begin another one.
const MISSES: u8 = 2;
/// Flows of which a packet was seen, by their hash.
const SEEN: usize = 1024;

/// What tells a flow: version and protocol, addresses, ports or SPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    bytes: [u8; 38],
}

impl Key {
    fn new(packet: &[u8], layout: &Layout, ports: Option<&[u8]>) -> Self {
        let mut bytes = [0; 38];
        // Flows have ports of any value: what has none is told apart by the first byte.
        (bytes[0], bytes[1]) = (u8::from(layout.v6) | u8::from(ports.is_some()) << 1, layout.protocol);
        bytes[2..].iter_mut().zip(layout.addresses(packet)).for_each(|(to, from)| *to = *from);
        bytes[34..].iter_mut().zip(ports.unwrap_or_default()).for_each(|(to, from)| *to = *from);
        Self { bytes }
    }
    fn hash(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.write(&self.bytes);
        hash.finish()
    }
}

/// A context.
#[derive(Debug)]
struct Context {
    key: Key,
    /// Number of the last reference that was acknowledged; of the one that waits for it, one more.
    number: u8,
    reference: Option<Reference>,
    pending: Option<(Reference, Instant)>,
    refreshed_at: Instant,
    used_at: Instant,
    misses: u8,
    /// Its packets are no RTP, even if they look like it.
    never_rtp: bool,
}

impl Context {
    fn next(&self) -> u8 {
        (self.number + 1) % REFERENCES
    }
    fn waits(&self, now: Instant) -> bool {
        self.pending.as_ref().is_some_and(|(_, since)| now < *since + PATIENCE)
    }
}

/// The end that compresses.
#[derive(Debug)]
pub(crate) struct Compressor {
    contexts: Vec<Context>,
    index: BTreeMap<Key, u8>,
    seen: Vec<u32>,
}

impl Default for Compressor {
    fn default() -> Self {
        Self { contexts: Vec::new(), index: BTreeMap::new(), seen: vec![0; SEEN] }
    }
}

impl Compressor {
    /// Appends a packet in the form in which datagram `seq` carries it, at most `room` bytes.
    pub(crate) fn compress(&mut self, now: Instant, seq: u64, packet: &[u8], room: usize, out: &mut Vec<u8>) {
        if let Some(layout) = Layout::of(packet) {
            let fits = packet.len() + 2 <= room;
            let of_flow = layout.ports(packet).map(|ports| Key::new(packet, &layout, Some(ports)));
            if of_flow.is_some_and(|key| self.by(key, now, seq, packet, layout, fits, out)) {
                return;
            }
            let key = Key::new(packet, &layout, None);
            if self.by(key, now, seq, packet, layout, fits, out) {
                return;
            }
        }
        out.extend_from_slice(packet);
    }

    /// Appends a packet by the context of this key; false if that cannot be. `fits`: the packet may install a reference.
    #[expect(clippy::too_many_arguments, reason = "a packet and what is known of it")]
    fn by(
        &mut self,
        key: Key,
        now: Instant,
        seq: u64,
        packet: &[u8],
        natural: Layout,
        fits: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(number) = self.context(key, now) else { return false };
        let Some(context) = self.contexts.get_mut(usize::from(number)) else { return false };
        context.used_at = now;
        let waits = context.waits(now);
        if let Some(reference) = &context.reference {
            let refresh = !waits && now >= context.refreshed_at + REFRESH;
            let first = context.number << 5 | if refresh { INSTALLS } else { 0 };
            if reference.compress(packet, seq, first, number, out) {
                context.misses = 0;
                if refresh {
                    let layout = natural.with(reference.layout.profile, packet);
                    let fresh = layout.and_then(|l| Reference::new(packet, l, seq));
                    context.pending = fresh.map(|fresh| (fresh, now));
                }
                return true;
            }
            context.misses = context.misses.saturating_add(1);
            if context.misses < MISSES {
                return false;
            }
            context.never_rtp |= reference.layout.profile == Profile::Rtp;
        }
        if waits || !fits {
            return false;
        }
        let layout = if key.bytes[0] & 2 == 0 {
            natural.ip_alone()
        } else {
            natural.rtp(packet).filter(|_| !context.never_rtp).unwrap_or(natural)
        };
        let Some(reference) = Reference::new(packet, layout, seq) else { return false };
        context.pending = Some((reference, now));
        context.misses = 0;
        out.extend([layout.profile_code(natural) << 2 | context.next(), number]);
        out.extend_from_slice(packet);
        true
    }

    /// The context of a key: a new one with the second packet, if there is a free one.
    fn context(&mut self, key: Key, now: Instant) -> Option<u8> {
        if let Some(number) = self.index.get(&key) {
            return Some(*number);
        }
        let hash = key.hash();
        let seen = self.seen.get_mut(hash as usize % SEEN)?;
        // Most flows of one packet, such as questions to name servers, are not worth a context.
        if *seen != (hash >> 32) as u32 {
            *seen = (hash >> 32) as u32;
            return None;
        }
        let fresh = |number| Context {
            key,
            number,
            reference: None,
            pending: None,
            refreshed_at: now,
            used_at: now,
            misses: 0,
            never_rtp: false,
        };
        let number = if self.contexts.len() < CONTEXTS {
            self.contexts.push(fresh(0));
            self.contexts.len() - 1
        } else {
            let oldest = self.contexts.iter().enumerate().min_by_key(|(_, c)| c.used_at);
            let (number, old) = oldest.filter(|(_, c)| now >= c.used_at + IDLE)?;
            let (gone, last) = (old.key, old.number);
            self.index.remove(&gone);
            // Numbers of references go on, so that those of the old flow keep their meaning for packets under way.
            self.contexts[number] = fresh(last);
            number
        };
        self.index.insert(key, number as u8);
        Some(number as u8)
    }

    /// The other end has the references that datagram `seq` has installed.
    pub(crate) fn acknowledged(&mut self, now: Instant, seq: u64) {
        for context in &mut self.contexts {
            if let Some((reference, _)) = context.pending.take_if(|(r, _)| r.at == seq) {
                context.number = context.next();
                context.reference = Some(reference);
                context.refreshed_at = now;
                context.misses = 0;
            }
        }
    }
}

// The first byte holds the number of a reference beside the other bits.
const _: () = assert!((REFERENCES - 1) << 5 & (COMPRESSED | INSTALLS) == 0);
