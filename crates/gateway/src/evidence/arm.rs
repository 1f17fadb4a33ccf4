//! Arms of an A/B test. The kernel decides about a SYN by a hash expression of nftables; the observer and the gateway compute the
//! same hash, so that a connection has one arm for all three, and for two gateways with the same seed.

use super::settings::{AssignmentUnit, SHARES, Settings};
use std::net::{IpAddr, SocketAddr};

/// An arm of an A/B test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Split, with the settings of `[satellite]`.
    First,
    /// Not split, or split with the settings of `[evidence.other]`.
    Second,
}

impl Arm {
    /// The arm of a connection.
    #[must_use]
    pub fn of(settings: &Settings, client: SocketAddr, server: SocketAddr) -> Self {
        let mut bytes = [0; 40];
        let mut len = 0;
        let mut put = |field: &[u8]| {
            // The kernel keeps each field in registers of 32 bits, padded with zeros.
            let room = bytes.iter_mut().skip(len);
            room.zip(field).for_each(|(to, from)| *to = *from);
            len += field.len().next_multiple_of(4);
        };
        put_address(&mut put, client.ip());
        if settings.by == AssignmentUnit::Connection {
            put_address(&mut put, server.ip());
            put(&client.port().to_be_bytes());
            put(&server.port().to_be_bytes());
        }
        let hash = jhash(bytes.get(..len).unwrap_or(&bytes), settings.seed);
        // `reciprocal_scale` of the kernel.
        let share = (u64::from(hash) * u64::from(SHARES)) >> 32;
        if share < u64::from(settings.threshold()) { Self::First } else { Self::Second }
    }
}

fn put_address(put: &mut impl FnMut(&[u8]), address: IpAddr) {
    match address {
        IpAddr::V4(a) => put(&a.octets()),
        IpAddr::V6(a) => put(&a.octets()),
    }
}

/// The condition on a SYN that puts its connection into the first arm, in the language of nftables.
pub(crate) fn condition(settings: &Settings, ip: &str) -> String {
    let of = match settings.by {
        AssignmentUnit::Connection => format!("{ip} saddr . {ip} daddr . tcp sport . tcp dport"),
        AssignmentUnit::Client => format!("{ip} saddr"),
    };
    format!("jhash {of} mod {SHARES} seed {:#x} < {}", settings.seed, settings.threshold())
}

/// Bob Jenkins' lookup3 hash, as in include/linux/jhash.h of the kernel.
fn jhash(key: &[u8], seed: u32) -> u32 {
    let word = |bytes: &[u8]| {
        let mut four = [0; 4];
        four.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        u32::from_ne_bytes(four)
    };
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32).wrapping_add(seed);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = key;
    // The last 1 to 12 bytes are the tail, even if they are a whole block.
    while let Some((block, after)) = rest.split_first_chunk::<12>().filter(|(_, after)| !after.is_empty()) {
        a = a.wrapping_add(word(&block[..4]));
        b = b.wrapping_add(word(&block[4..8]));
        c = c.wrapping_add(word(&block[8..]));
        let step = |x: &mut u32, y: u32, bits: u32| *x = x.wrapping_sub(y) ^ y.rotate_left(bits);
        step(&mut a, c, 4);
        c = c.wrapping_add(b);
        step(&mut b, a, 6);
        a = a.wrapping_add(c);
        step(&mut c, b, 8);
        b = b.wrapping_add(a);
        step(&mut a, c, 16);
        c = c.wrapping_add(b);
        step(&mut b, a, 19);
        a = a.wrapping_add(c);
        step(&mut c, b, 4);
        b = b.wrapping_add(a);
        rest = after;
    }
    if rest.is_empty() {
        return c;
    }
    // The tail is read byte by byte, as little-endian words.
    let tail = |from: usize| {
        let part = rest.get(from..rest.len().min(from + 4)).unwrap_or_default();
        part.iter().rev().fold(0, |word: u32, byte| word << 8 | u32::from(*byte))
    };
    a = a.wrapping_add(tail(0));
    b = b.wrapping_add(tail(4));
    c = c.wrapping_add(tail(8));
    let step = |x: &mut u32, y: u32, bits: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    step(&mut c, b, 14);
    step(&mut a, c, 11);
    step(&mut b, a, 25);
    step(&mut c, b, 16);
    step(&mut a, c, 4);
    step(&mut b, a, 14);
    step(&mut c, b, 24);
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published answers of lookup3's `hashlittle`, which jhash is on little-endian machines (its self-test, lookup3.c driver5).
    #[test]
    #[cfg(target_endian = "little")]
    fn known_answers() {
        assert_eq!(jhash(b"", 0), 0xdead_beef);
        assert_eq!(jhash(b"", 0xdead_beef), 0xbd5b_7dde);
        assert_eq!(jhash(b"Four score and seven years ago", 0), 0x1777_0551);
        assert_eq!(jhash(b"Four score and seven years ago", 1), 0xcd62_8161);
    }

    #[test]
    fn the_share_of_the_first_arm_is_the_fraction() {
        let client =
            |n: u32| SocketAddr::from((std::net::Ipv4Addr::from(0x0a00_0000 | n >> 4), 30_000 + n as u16));
        let server = SocketAddr::from(([192, 0, 2, 1], 443));
        for fraction in [0.1, 0.5, 0.9] {
            let s = Settings { fraction, ..Settings::default() };
            let first = (0..20_000).filter(|n| Arm::of(&s, client(*n), server) == Arm::First).count();
            // Five standard deviations of a binomial count.
            let (n, p) = (20_000.0, fraction);
            assert!((first as f64 - n * p).abs() < 5.0 * f64::sqrt(n * p * (1.0 - p)), "{fraction}: {first}");
        }
        let s = Settings { by: AssignmentUnit::Client, ..Settings::default() };
        for n in 0..1000 {
            let same = client(n & !15).ip();
            let of = |port| Arm::of(&s, SocketAddr::new(same, port), server);
            assert_eq!(of(1), of(n as u16), "a client has one arm");
        }
    }
}
