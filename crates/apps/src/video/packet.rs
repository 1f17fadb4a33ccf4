//! Division of frames into packets.

/// How frames are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Payload of a full packet, bytes; above 0.
    pub payload: u64,
    /// Frames do not share packets: the last packet of a frame is short. Otherwise the bytes that do not fill a packet
    /// wait for the next frame.
    pub flush: bool,
    /// The last packet of a frame is padded: all packets have the same size.
    pub pad: bool,
}

/// The packets of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Bytes of the frame, including padding.
    pub bytes: u64,
    /// Number of packets that the frame completes.
    pub ready: u64,
    /// Payload of the last packet that the frame completes, bytes; the others are full.
    pub last: u64,
    /// Number of the packet with its first byte.
    pub first_packet: u64,
    /// Number of the packet with its last byte, which may be incomplete.
    pub last_packet: u64,
}

/// Divides frames into packets, which are numbered from 0.
#[derive(Clone, Copy, Debug)]
pub struct Cutter {
    cut: Cut,
    /// Bytes waiting to fill a packet.
    waiting: u64,
    /// Number of packets completed so far.
    packets: u64,
}

impl Cutter {
    /// Before the first frame.
    #[must_use]
    pub fn new(cut: Cut) -> Self {
        Self { cut, waiting: 0, packets: 0 }
    }
    /// How frames are divided.
    #[must_use]
    pub fn cut(&self) -> Cut {
        self.cut
    }
    /// Number of packets completed so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The video has ended: completes the packet that waits for more bytes, and returns its payload.
    pub fn finish(&mut self) -> Option<u64> {
        let bytes = core::mem::take(&mut self.waiting);
        self.packets += u64::from(bytes > 0);
        (bytes > 0).then_some(bytes)
    }

    /// Adds the next frame, of this many bytes, at least 1.
    pub fn frame(&mut self, bytes: u64) -> Pieces {
        let Cut { payload, flush, pad } = self.cut;
        let first_packet = self.packets;
        let bytes = bytes.max(1);
        if flush || pad {
            let ready = bytes.div_ceil(payload);
            let bytes = if pad { ready * payload } else { bytes };
            self.packets += ready;
            let last = bytes - (ready - 1) * payload;
            return Pieces { bytes, ready, last, first_packet, last_packet: self.packets - 1 };
        }
        let all = self.waiting + bytes;
        let ready = all / payload;
        self.waiting = all % payload;
        self.packets += ready;
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
        // 6960 bytes are seven packets and 240 bytes, which wait for more until the end.
        assert_eq!((c.packets(), c.finish(), c.packets(), c.finish()), (7, Some(240), 8, None));
    }
}
