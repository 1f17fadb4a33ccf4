//! One session with the other gateway: keys that no other session has, frames, and signs of life.
//!
//! ```text
//! frame  first byte, truncated number (1 to 3), the rest of the frame encrypted, tag (16)      see skyhaul_repair::wire
//! sign   version and type 8 (1), counter (8), flags encrypted (1), tag (16)
//! ```
//! The full number of a frame is the counter of its nonce, and that of a sign of the sign's nonce. Neither is accepted twice.

use super::datagram;
use super::key::{Id, Key, Secret, Space};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_repair::code::{Datagram, ReedSolomon};
use skyhaul_repair::wire::{self, VERSION};
use skyhaul_repair::{Config, End, Frame, Kind, Output};
use std::sync::Arc;

/// The type of a sign of life, in the lower half of its first byte.
pub(super) const SIGN: u8 = 8;
/// Bytes of a sign that stay readable.
const SIGN_CLEAR: usize = 9;
/// After this time without anything from the other end, it counts as gone.
pub(super) const SILENCE: Duration = Duration::from_millis(600);
/// The flags of a sign.
const HEARS: u8 = 1;
const BUSY: u8 = 2;

/// What an end says of itself in a sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sign {
    /// It hears the other end.
    pub(super) hears: bool,
    /// It cannot keep up.
    pub(super) busy: bool,
}

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is not authentic.
    Forged,
    /// It has arrived before, or is too old to tell.
    Replayed,
    /// It is authentic, and yet no frame.
    Malformed,
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) mine: Id,
    pub(super) theirs: Id,
    sends: Key,
    receives: Key,
    pub(super) end: End<ReedSolomon>,
    /// When something new and authentic has last arrived.
    heard_at: Option<Instant>,
    pub(super) began: Instant,
    next_sign: u64,
    last_sign: Option<u64>,
    /// What the other end has last said.
    pub(super) peer: Sign,
}

impl Session {
    pub(super) fn new(now: Instant, secret: &Secret, (mine, theirs): (Id, Id), config: &Config) -> Self {
        // Disciplines that drop at random do it by this stream.
        let seed = mine.iter().fold(0, |n: u64, b| n << 8 ^ n >> 56 ^ u64::from(*b));
        Self {
            mine,
            theirs,
            sends: secret.session(&mine, &theirs),
            receives: secret.session(&theirs, &mine),
            end: End::new(config, ReedSolomon::with_headers(config.compress), Rng::stream(seed, "repair")),
            heard_at: None,
            began: now,
            next_sign: 0,
            last_sign: None,
            peer: Sign::default(),
        }
    }
    /// Whether the other end has been heard lately.
    pub(super) fn is_alive(&self, now: Instant) -> bool {
        self.heard_at.is_some_and(|at| now < at + SILENCE)
    }
    /// When the other end was last heard.
    pub(super) fn heard_at(&self) -> Option<Instant> {
        self.heard_at
    }

    /// A frame has arrived; `marked` if it was marked as congested on its way.
    pub(super) fn frame(&mut self, now: Instant, packet: &mut [u8], marked: bool) -> Result<(), Refused> {
        let expected = self.end.expected();
        let (number, clear) = wire::number(packet, expected.number).map_err(|_| Refused::Forged)?;
        let plain = self.receives.open(Space::Frames, number, clear, packet).ok_or(Refused::Forged)?;
        let Frame { number, kind } = wire::decode(plain, &expected).map_err(|_| Refused::Malformed)?;
        let kind = match kind {
            Kind::Source { seq, floor, datagram } => {
                Kind::Source { seq, floor, datagram: Arc::from(datagram) }
            }
            Kind::Repair { first, k, parity, index, symbol } => {
                Kind::Repair { first, k, parity, index, symbol: symbol.to_vec() }
            }
            Kind::Report(report) => Kind::Report(report),
        };
        if !self.end.receive(now, Frame { number, kind }, marked) {
            return Err(Refused::Replayed);
        }
        self.heard_at = Some(now);
        Ok(())
    }
    /// A sign of life has arrived.
    pub(super) fn sign(&mut self, now: Instant, packet: &mut [u8]) -> Result<(), Refused> {
        let counter = packet.get(1..SIGN_CLEAR).and_then(|c| c.try_into().ok()).map(u64::from_be_bytes);
        let counter = counter.ok_or(Refused::Forged)?;
        let plain = self.receives.open(Space::Signs, counter, SIGN_CLEAR, packet).ok_or(Refused::Forged)?;
        let Some(&[flags]) = plain.get(SIGN_CLEAR..) else { return Err(Refused::Malformed) };
        if self.last_sign.is_some_and(|last| counter <= last) {
            return Err(Refused::Replayed);
        }
        self.last_sign = Some(counter);
        self.heard_at = Some(now);
        self.peer = Sign { hears: flags & HEARS != 0, busy: flags & BUSY != 0 };
        Ok(())
    }

    /// Writes a sign of life.
    pub(super) fn write_sign(&mut self, what: Sign, out: &mut Vec<u8>) {
        out.clear();
        out.push(VERSION << 4 | SIGN);
        out.extend(self.next_sign.to_be_bytes());
        out.push(HEARS * u8::from(what.hears) + BUSY * u8::from(what.busy));
        self.sends.seal(Space::Signs, self.next_sign, SIGN_CLEAR, out);
        self.next_sign += 1;
    }
    /// Writes the next frame. Returns its traffic class: that of the datagram in it; without one, 0, or DSCP LE for a repair symbol of low
    /// priority.
    pub(super) fn write_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<u8> {
        let Output::Frame { frame: Frame { number, kind }, digits, low_priority, .. } =
            self.end.poll_frame(now, &mut |_, _| {})?
        else {
            return None;
        };
        let (class, kind) = match kind {
            Kind::Source { seq, floor, datagram: Datagram { bytes, class, .. } } => {
                (class, Kind::Source { seq, floor, datagram: bytes })
            }
            Kind::Repair { first, k, parity, index, symbol } => {
                let class = if low_priority { datagram::LOW << 2 } else { 0 };
                (class, Kind::Repair { first, k, parity, index, symbol })
            }
            Kind::Report(report) => (0, Kind::Report(report)),
        };
        out.clear();
        wire::encode(&Frame { number, kind }, digits, out);
        self.sends.seal(Space::Frames, number, 1 + usize::from(digits), out);
        Some(class)
    }
}
