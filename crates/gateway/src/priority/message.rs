//! Messages of the test between two gateways, in UDP datagrams.
//!
//! ```text
//! tester                                  answerer
//! Hello { nonce } ──────────────────────▶ in front of a host, or at the address of the gateway
//!         ◀────────────────────── Welcome { nonce, gateway, token }
//! Probe { token, train, index } ────────▶ of normal and of low priority, a train of them at once
//! Ask { token, train } ─────────────────▶
//!         ◀────────────────────── Report { token, train, arrivals }: in the order of arrival
//! ```
//! A welcome is shorter than a hello, and everything else needs the token, which only the receiver of the welcome knows. So nobody can use
//! an answerer to flood a third party.

use std::num::NonZeroU32;

/// First bytes of each message; the last one is a version.
const MAGIC: [u8; 5] = *b"SkPT\x01";
/// Length of a hello, bytes.
const HELLO: usize = 64;
/// Length of a probe, bytes: about that of a data segment.
pub(crate) const PROBE: usize = 1000;
/// Maximum number of probes of a train: their report fits into the smallest IPv6 packet.
pub(crate) const LONGEST: usize = 192;
/// Buffer for any message, bytes.
pub(crate) const ROOM: usize = 1280;

/// A probe that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Number of the probe in its train.
    pub(crate) index: u8,
    /// DSCP with which it arrived.
    pub(crate) dscp: u8,
    /// Time since the first arrival, microseconds.
    pub(crate) at: u32,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Hello { nonce: u64 },
    Welcome { nonce: u64, gateway: NonZeroU32, token: u64 },
    Probe { token: u64, train: u16, index: u8 },
    Ask { token: u64, train: u16 },
    Report { token: u64, train: u16, arrivals: Vec<Arrival> },
}

impl Message {
    /// Writes the message; returns its length.
    pub(crate) fn write(&self, out: &mut [u8; ROOM]) -> usize {
        let mut room = &mut out[..];
        let mut put = |bytes: &[u8]| {
            // Never taken: the longest message fits.
            let Some((to, rest)) = core::mem::take(&mut room).split_at_mut_checked(bytes.len()) else {
                return;
            };
            to.copy_from_slice(bytes);
            room = rest;
        };
        put(&MAGIC);
        let least = match self {
            Self::Hello { nonce } => {
                put(&[1]);
                put(&nonce.to_be_bytes());
                HELLO
            }
            Self::Welcome { nonce, gateway, token } => {
                put(&[2]);
                put(&nonce.to_be_bytes());
                put(&gateway.get().to_be_bytes());
                put(&token.to_be_bytes());
                0
            }
            Self::Probe { token, train, index } => {
                put(&[3]);
                put(&token.to_be_bytes());
                put(&train.to_be_bytes());
                put(&[*index]);
                PROBE
            }
            Self::Ask { token, train } => {
                put(&[4]);
                put(&token.to_be_bytes());
                put(&train.to_be_bytes());
                0
            }
            Self::Report { token, train, arrivals } => {
                put(&[5]);
                put(&token.to_be_bytes());
                put(&train.to_be_bytes());
                for a in arrivals.iter().take(LONGEST) {
                    put(&[a.index, a.dscp]);
                    put(&a.at.to_be_bytes());
                }
                0
            }
        };
        let at = ROOM - room.len();
        room.iter_mut().take(least.saturating_sub(at)).for_each(|b| *b = 0);
        at.max(least)
    }

    /// Reads a message; `None` if it is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.strip_prefix(&MAGIC)?.split_first()?;
        let mut rest = rest;
        let long = |rest: &mut &[u8]| {
            let (word, after) = rest.split_first_chunk::<8>()?;
            *rest = after;
            Some(u64::from_be_bytes(*word))
        };
        let short = |rest: &mut &[u8]| {
            let (word, after) = rest.split_first_chunk::<2>()?;
            *rest = after;
            Some(u16::from_be_bytes(*word))
        };
        match kind {
            1 if bytes.len() == HELLO => Some(Self::Hello { nonce: long(&mut rest)? }),
            2 => {
                let nonce = long(&mut rest)?;
                let (gateway, after) = rest.split_first_chunk::<4>()?;
                rest = after;
                let gateway = NonZeroU32::new(u32::from_be_bytes(*gateway))?;
                Some(Self::Welcome { nonce, gateway, token: long(&mut rest)? }).filter(|_| rest.is_empty())
            }
            3 if bytes.len() == PROBE => {
                let (token, train) = (long(&mut rest)?, short(&mut rest)?);
                Some(Self::Probe { token, train, index: *rest.first()? })
            }
            4 => {
                let (token, train) = (long(&mut rest)?, short(&mut rest)?);
                rest.is_empty().then_some(Self::Ask { token, train })
            }
            5 => {
                let (token, train) = (long(&mut rest)?, short(&mut rest)?);
                let (entries, over) = rest.as_chunks::<6>();
                if !over.is_empty() || entries.len() > LONGEST {
                    return None;
                }
                let arrival = |e: &[u8; 6]| Arrival {
                    index: e[0],
                    dscp: e[1],
                    at: u32::from_be_bytes([e[2], e[3], e[4], e[5]]),
                };
                Some(Self::Report { token, train, arrivals: entries.iter().map(arrival).collect() })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let arrivals =
            (0..LONGEST as u8).map(|n| Arrival { index: n, dscp: n & 63, at: 70_000 * u32::from(n) });
        let mut out = [0xff; ROOM];
        let gateway = NonZeroU32::new(7).unwrap();
        let mut lengths = Vec::new();
        for m in [
            Message::Hello { nonce: u64::MAX - 5 },
            Message::Welcome { nonce: 1, gateway, token: 2 },
            Message::Probe { token: 1, train: 300, index: 191 },
            Message::Ask { token: 3, train: 4 },
            Message::Report { token: 3, train: 4, arrivals: arrivals.collect() },
        ] {
            let n = m.write(&mut out);
            assert_eq!(Message::read(&out[..n]), Some(m));
            assert_eq!(Message::read(&out[..n - 1]), None);
            lengths.push(n);
        }
        assert!(lengths[1] <= lengths[0] && lengths.iter().all(|n| *n <= 1232), "{lengths:?}");
    }
}
