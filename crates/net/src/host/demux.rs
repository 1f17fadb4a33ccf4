//! Which connection a segment belongs to.

use super::secret::Secret;
use siphasher::sip::SipHasher13;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// Connections by their ends, (local, remote). The hash has a key, so that strangers who choose addresses and ports
/// cannot make a search long. Nothing goes through it from end to end: the order would be that of the hash.
pub(super) struct Demux {
    #[expect(clippy::disallowed_types, reason = "looked up, never iterated")]
    slots: std::collections::HashMap<Ends, u32, Keyed>,
}

impl std::fmt::Debug for Demux {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Demux").field("len", &self.slots.len()).finish()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Ends(SocketAddr, SocketAddr);

impl Hash for Ends {
    fn hash<H: Hasher>(&self, h: &mut H) {
        // In one piece: a hash of many small ones costs several times as much.
        let (mut key, mut n) = ([0; 36], 0);
        for end in [self.0, self.1] {
            let mut add = |bytes: &[u8]| {
                key[n..n + bytes.len()].copy_from_slice(bytes);
                n += bytes.len();
            };
            match end.ip() {
                IpAddr::V4(a) => add(&a.octets()),
                IpAddr::V6(a) => add(&a.octets()),
            }
            add(&end.port().to_be_bytes());
        }
        h.write(&key[..n]);
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
    /// No connections; the key comes from `secret`.
    #[expect(clippy::disallowed_types, reason = "looked up, never iterated")]
    pub(super) fn new(secret: &Secret) -> Self {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&secret.of(b"demux", &[]).to_be_bytes());
        key[8..].copy_from_slice(&secret.of(b"demux, second half", &[]).to_be_bytes());
        Self { slots: std::collections::HashMap::with_hasher(Keyed(key)) }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
    /// Where the connection between these ends is.
    pub(super) fn get(&self, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        self.slots.get(&Ends(local, remote)).copied()
    }
    /// There is a connection between these ends.
    pub(super) fn has(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.slots.contains_key(&Ends(local, remote))
    }
    /// The connection between these ends is there.
    pub(super) fn insert(&mut self, local: SocketAddr, remote: SocketAddr, slot: u32) {
        self.slots.insert(Ends(local, remote), slot);
    }
    /// There is none between these ends any more.
    pub(super) fn remove(&mut self, local: SocketAddr, remote: SocketAddr) {
        self.slots.remove(&Ends(local, remote));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            d.insert(local, remote, slot);
        }
        for (slot, (local, remote)) in (0..).zip(all) {
            assert_eq!(d.get(local, remote), Some(slot));
        }
        d.remove(all[1].0, all[1].1);
        assert!(!d.has(all[1].0, all[1].1) && d.has(all[0].0, all[0].1));
        assert_eq!(d.len(), 4);
    }
}
