//! Division of frames into packets.

use super::groups::BLOCK;
use super::whole::round;

/// How frames are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Payload of a full packet, bytes; above 0.
    pub payload: u64,
    /// Frames do not share packets: the last packet of a frame is short. Otherwise the rest waits for the next
    /// frame.
    pub flush: bool,
    /// The last packet of a frame is padded: all packets have the same size.
    pub pad: bool,
}

impl Cut {
    /// Whether each frame begins with a packet of its own.
    #[inline(always)]
    pub(super) fn is_apart(&self) -> bool {
        self.flush | self.pad
    }
    /// Bytes of complete packets after frames of so many bytes, including their padding.
    #[inline]
    pub(super) fn packed(&self, bytes: u64) -> u64 {
        if self.is_apart() { bytes } else { bytes - bytes % self.payload }
    }
}

/// The packets of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Bytes of the frame, including padding.
    pub bytes: u64,
    /// Number of packets completed by it.
    pub ready: u64,
    /// Payload of the last of them; the others are full.
    pub last: u64,
    /// Number of the packet with its first byte.
    pub first_packet: u64,
    /// Number of the packet with its last byte, which may be incomplete.
    pub last_packet: u64,
}

/// How far a film reaches after a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Complete packets.
    pub(super) packets: u64,
    /// Bytes in these packets.
    pub(super) packed: u64,
    /// Bytes beyond the packets, which wait for the next frame.
    pub(super) rest: u32,
}

impl Reach {
    /// All bytes.
    #[inline(always)]
    pub(super) fn bytes(self) -> u64 {
        self.packed + u64::from(self.rest)
    }
    /// Where packet `number` of the next frame begins.
    #[inline(always)]
    pub(super) fn begin(self, number: u64, payload: u64) -> u64 {
        self.packed + number.saturating_sub(self.packets) * payload
    }
    /// Where a packet of the last frame ends that begins there.
    #[inline(always)]
    pub(super) fn end(self, begin: u64, payload: u64) -> u64 {
        (begin + payload).min(self.packed)
    }
}

/// Divides frames into packets, which are numbered from 0.
#[derive(Clone, Copy, Debug)]
pub struct Cutter {
    cut: Cut,
    /// Bytes waiting to fill a packet.
    waiting: u64,
    packets: u64,
    /// Bytes of complete packets.
    packed: u64,
}

impl Cutter {
    /// Before the first frame.
    #[must_use]
    pub fn new(cut: Cut) -> Self {
        Self { cut, waiting: 0, packets: 0, packed: 0 }
    }
    /// After frames of so many bytes, which are not numbered.
    #[must_use]
    pub(super) fn after(cut: Cut, bytes: u64) -> Self {
        let packed = cut.packed(bytes);
        Self { cut, waiting: bytes - packed, packets: 0, packed }
    }
    /// How it divides frames.
    #[must_use]
    pub fn cut(&self) -> Cut {
        self.cut
    }
    /// Number of complete packets.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// How far the film reaches so far.
    #[inline(always)]
    pub(super) fn reach(&self) -> Reach {
        // Less than a packet waits.
        Reach { packets: self.packets, packed: self.packed, rest: self.waiting as u32 }
    }

    /// Adds the next frames, each of so many bytes, from 1 to 2³² less a packet, and puts into `all` what `of` makes of each,
    /// and of how far the film reaches after it.
    #[inline(always)]
    pub(super) fn frames<T, R>(
        &mut self,
        frames: impl Iterator<Item = (u32, T)>,
        mut of: impl FnMut(T, Reach) -> R,
        all: &mut impl Extend<R>,
    ) {
        // Local, so that it stays in registers.
        let mut cutter = *self;
        let Cut { payload, flush, pad } = self.cut;
        match u32::try_from(payload) {
            // As below, with fewer decisions.
            Ok(payload) if flush & !pad & (self.waiting == 0) => all.extend(frames.map(|(bytes, frame)| {
                debug_assert!(bytes <= u32::MAX - payload, "{bytes} B are too many");
                cutter.packets += u64::from(bytes.wrapping_add(payload - 1) / payload);
                cutter.packed += u64::from(bytes);
                of(frame, Reach { packets: cutter.packets, packed: cutter.packed, rest: 0 })
            })),
            _ => all.extend(frames.map(|(bytes, frame)| {
                cutter.frame(bytes.into());
                of(frame, cutter.reach())
            })),
        }
        *self = cutter;
    }

    /// The same, without a word on any of them; afterwards only [`Self::packets`] is known.
    #[inline(always)]
    pub(super) fn add(&mut self, frames: &[u32]) {
        let Cut { payload, flush, pad } = self.cut;
        // Then they have less than 2³² packets together.
        if flush & !pad & (self.waiting == 0) & (payload >= BLOCK as u64) & (frames.len() <= BLOCK) {
            let payload = payload as f64;
            // Rounded up: several at a time, which division of whole numbers is not. What is rounded is never close to a half: the
            // distance is half of the inverse of the payload.
            let packets = |bytes: &u32| round((f64::from(*bytes) - 0.5) / payload + 0.5) as u32;
            self.packets += u64::from(frames.iter().map(packets).sum::<u32>());
        } else {
            self.frames(frames.iter().map(|bytes| (*bytes, ())), |(), _| (), &mut ());
        }
    }

    /// Adds the next frame, of this many bytes, at least 1.
    #[inline(always)]
    pub fn frame(&mut self, bytes: u64) -> Pieces {
        let Cut { payload, pad, .. } = self.cut;
        let first_packet = self.packets;
        let bytes = bytes.max(1);
        if self.cut.is_apart() {
            let ready = bytes.div_ceil(payload);
            let bytes = if pad { ready * payload } else { bytes };
            self.packets += ready;
            self.packed += bytes;
            let last = bytes - (ready - 1) * payload;
            return Pieces { bytes, ready, last, first_packet, last_packet: self.packets - 1 };
        }
        let all = self.waiting + bytes;
        let ready = all / payload;
        self.waiting = all % payload;
        self.packets += ready;
        self.packed += ready * payload;
        let last_packet = if self.waiting == 0 { self.packets - 1 } else { self.packets };
        Pieces { bytes, ready, last: payload, first_packet, last_packet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cutter(flush: bool, pad: bool) -> Cutter {
        Cutter::new(Cut { payload: 960, flush, pad })
    }

    #[test]
    fn a_frame_of_its_own_has_a_short_last_packet() {
        let mut c = cutter(true, false);
        let p = |bytes, ready, last, first_packet, last_packet| Pieces {
            bytes,
            ready,
            last,
            first_packet,
            last_packet,
        };
        assert_eq!(c.frame(2000), p(2000, 3, 80, 0, 2));
        assert_eq!(c.frame(960), p(960, 1, 960, 3, 3));
        assert_eq!(c.frame(0), p(1, 1, 1, 4, 4));
        assert_eq!(c.packets(), 5);
    }

    #[test]
    fn padding_makes_all_packets_alike() {
        for flush in [true, false] {
            let mut c = cutter(flush, true);
            assert_eq!((c.frame(2000).bytes, c.frame(961).bytes, c.packets()), (2880, 1920, 5));
        }
    }

    #[test]
    fn without_flushing_the_rest_waits_for_the_next_frame() {
        let mut c = cutter(false, false);
        let p = |bytes, ready, first_packet, last_packet| Pieces {
            bytes,
            ready,
            last: 960,
            first_packet,
            last_packet,
        };
        assert_eq!(c.frame(500), p(500, 0, 0, 0));
        assert_eq!(c.frame(460), p(460, 1, 0, 0));
        assert_eq!(c.frame(1000), p(1000, 1, 1, 2));
        assert_eq!(c.frame(5000), p(5000, 5, 2, 7));
        // Nothing is lost: what is not sent waits.
        assert_eq!(c.packets() * 960 + c.waiting, 6960);
    }

    #[test]
    fn packets_counted_together_are_those_of_each_frame() {
        let mut rng = skyhaul_base::Rng::stream(16, "packets");
        for payload in [1, 63, 64, 65, 959, 960, 1460, 65_535, 1 << 20, (1 << 31) - 1] {
            for (flush, pad) in [(true, false), (true, true), (false, false)] {
                let mut together = Cutter::new(Cut { payload, flush, pad });
                let mut each = together;
                for most in [1, 2, 961, 100_000, 1 << 24, 1 << 31] {
                    let at = |n: u64| 1 + n.min(most - 1);
                    let mut frames: Vec<u32> = (0..50).map(|_| at(rng.below(most)) as u32).collect();
                    // Around whole packets.
                    frames.extend([1, payload - 1, payload, payload + 1, 2 * payload].map(|n| at(n) as u32));
                    together.add(&frames);
                    frames.iter().for_each(|bytes| _ = each.frame(u64::from(*bytes)));
                    assert_eq!(together.packets(), each.packets(), "{payload} {flush} {pad} {most}");
                }
            }
        }
    }
}
