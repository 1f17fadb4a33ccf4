//! Finds the connection of a segment.

use super::ends::Ends;
use super::secret::Secret;
use siphasher::sip::SipHasher13;
use std::hash::{BuildHasher, Hash, Hasher};

/// Connections by (local, remote) addresses. The hash is keyed, so that attackers who choose addresses and ports
/// cannot cause long searches. Nothing iterates over it: the order would be that of the hash.
pub(super) struct Demux {
    #[expect(clippy::disallowed_types, reason = "looked up, never iterated")]
    slots: std::collections::HashMap<Ends, u32, Keyed>,
}

impl std::fmt::Debug for Demux {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demux").field("len", &self.slots.len()).finish()
    }
}

impl Hash for Ends {
    fn hash<H: Hasher>(&self, h: &mut H) {
        // In one piece: hashing many small pieces costs several times as much.
        h.write(self.bytes());
    }
}

struct Keyed([u8; 16]);

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

impl Demux {
    /// An empty table; the key comes from `secret`.
    #[expect(clippy::disallowed_types, reason = "looked up, never iterated")]
    pub(super) fn new(secret: &Secret) -> Self {
        Self { slots: std::collections::HashMap::with_hasher(Keyed(secret.key(b"demux"))) }
    }

    /// Number of connections.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
    /// The slot of the connection between these ends.
    pub(super) fn get(&self, ends: &Ends) -> Option<u32> {
        self.slots.get(ends).copied()
    }
    /// Whether there is a connection between these ends.
    pub(super) fn has(&self, ends: &Ends) -> bool {
        self.slots.contains_key(ends)
    }
    /// Enters the connection between these ends.
    pub(super) fn insert(&mut self, ends: Ends, slot: u32) {
        self.slots.insert(ends, slot);
    }
    /// Removes the connection between these ends if it is in this slot; a successor in another slot stays.
    pub(super) fn remove(&mut self, ends: &Ends, slot: u32) {
        if self.get(ends) == Some(slot) {
            self.slots.remove(ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn connections_are_told_apart_by_both_ends() {
        let end = |a: &str| a.parse::<SocketAddr>().unwrap();
        let mut d = Demux::new(&Secret::fixed([7; 16]));
        let all = [
            (end("10.0.0.1:80"), end("10.0.0.2:1000")),
            (end("10.0.0.1:80"), end("10.0.0.2:1001")),
            (end("10.0.0.2:1000"), end("10.0.0.1:80")),
            (end("[fd00::1]:80"), end("[fd00::2]:1000")),
            (end("[fd00::1]:80"), end("[fd00::3]:1000")),
        ];
        for (slot, (local, remote)) in (0..).zip(all) {
            d.insert(Ends::new(local, remote), slot);
        }
        for (slot, (local, remote)) in (0..).zip(all) {
            assert_eq!(d.get(&Ends::new(local, remote)), Some(slot));
        }
        // Another one has taken the place of that of slot 9.
        d.remove(&Ends::new(all[1].0, all[1].1), 9);
        assert_eq!(d.len(), 5);
        d.remove(&Ends::new(all[1].0, all[1].1), 1);
        assert!(!d.has(&Ends::new(all[1].0, all[1].1)) && d.has(&Ends::new(all[0].0, all[0].1)));
        assert_eq!(d.len(), 4);
    }
}
