//! A host's secret key, and what is derived from it: unpredictable initial sequence numbers and timestamp offsets (RFC 6528,
//! RFC 7323 §5.4), and keys of hash tables.

use siphasher::sip::SipHasher24;
use skyhaul_base::Instant;
use skyhaul_tcp::Seq;
use std::fmt;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// A key of 128 bits, drawn once per process.
#[derive(Clone, Copy)]
pub struct Secret([u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Draws a key from the operating system's generator.
    ///
    /// # Errors
    /// If the system has none.
    pub fn draw() -> std::io::Result<Self> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(std::io::Error::other)?;
        Ok(Self(key))
    }
    /// A fixed key, for reproducible runs.
    #[must_use]
    pub const fn fixed(key: [u8; 16]) -> Self {
        Self(key)
    }

    /// A keyed hash of these addresses and ports, a different one for each purpose.
    pub(super) fn of(&self, purpose: &[u8], ends: &[SocketAddr]) -> u64 {
        let mut h = SipHasher24::new_with_key(&self.0);
        h.write(purpose);
        for end in ends {
            match end.ip() {
                IpAddr::V4(a) => h.write(&a.octets()),
                IpAddr::V6(a) => h.write(&a.octets()),
            }
            h.write(&end.port().to_be_bytes());
        }
        h.finish()
    }

    /// A key for a hash table with this purpose.
    pub(super) fn key(&self, purpose: &[u8]) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.of(purpose, &[]).to_be_bytes());
        key[8..].copy_from_slice(&self.of(&[purpose, b", second half"].concat(), &[]).to_be_bytes());
        key
    }

    /// ISN = M + F(ends, key), where M is a clock with ticks of 4 µs (RFC 6528 §3).
    pub(super) fn isn(&self, now: Instant, local: SocketAddr, remote: SocketAddr) -> Seq {
        let clock = (now.as_nanos() / 4000) as u32;
        Seq(clock.wrapping_add(self.of(b"isn", &[local, remote]) as u32))
    }

    /// Initial value of a connection's timestamps.
    pub(super) fn timestamp_offset(&self, local: SocketAddr, remote: SocketAddr) -> u32 {
        self.of(b"timestamps", &[local, remote]) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_depend_on_key_and_ends_and_grow_with_time() {
        let (a, b) = (Secret::fixed([1; 16]), Secret::fixed([2; 16]));
        let end = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let t = Instant::from_nanos(8_000_000);
        let n = a.isn(t, end(1), end(2));
        assert_ne!(n, b.isn(t, end(1), end(2)));
        assert_ne!(n, a.isn(t, end(1), end(3)));
        assert_ne!(n, a.isn(t, end(2), end(1)));
        // The next connection between the same ends begins beyond the last one, a count per 4 µs.
        assert_eq!(a.isn(Instant::from_nanos(9_000_000), end(1), end(2)).diff(n), 250);
        assert_ne!(a.timestamp_offset(end(1), end(2)), n.0);
        assert!(Secret::draw().is_ok());
        assert_eq!(format!("{a:?}"), "Secret(..)");
    }
}
