//! Compressed headers on a leg: their length, and which of them the far end can decompress. Nothing is encoded; packets
//! only become shorter.
//!
//! `scps` is end-to-end compression as in SCPS-TP: constant fields are omitted and no field is coded as a difference,
//! so each packet can be decompressed on its own. `vj` (RFC 1144) codes differences to the previous packet: after a
//! loss, no packet can be decompressed until one with a complete header arrives, such as a retransmission.

use skyhaul_base::amount::Size;

/// Sizes of compressed headers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "HeaderSizesSpec")]
pub struct Sizes {
    /// Header size of a packet with data; by default "16 B" with "scps", "5 B" with "vj".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Size>,
    /// Header size of an acknowledgement; by default "12 B" with "scps", "5 B" with "vj".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks: Option<Size>,
}

/// Compression of IP and TCP headers on a leg. Short forms: "scps", "vj".
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(rename = "HeaderCompressionSpec")]
pub enum Compression {
    /// Each packet can be decompressed on its own.
    Scps(Sizes),
    /// Headers are differences to the previous packet (RFC 1144), so that a loss affects later packets.
    Vj(Sizes),
}

impl Compression {
    /// The name in files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Scps(_) => "scps",
            Self::Vj(_) => "vj",
        }
    }
    /// With defaults filled in.
    #[must_use]
    pub fn explicit(&self) -> Self {
        let [data, acks] = self.sizes().map(|n| Some(Size(n.into())));
        match self {
            Self::Scps(_) => Self::Scps(Sizes { data, acks }),
            Self::Vj(_) => Self::Vj(Sizes { data, acks }),
        }
    }
    /// Bytes of the headers of data and of acknowledgements.
    #[must_use]
    pub fn sizes(&self) -> [u32; 2] {
        // 5 bytes with RFC 1144: its change mask, the checksum and two differences of a byte each (§3.2.2).
        let (sizes, usual) = match self {
            Self::Scps(sizes) => (sizes, [16, 12]),
            Self::Vj(sizes) => (sizes, [5, 5]),
        };
        let size =
            |given: Option<Size>, usual| given.map_or(usual, |s| u32::try_from(s.0).unwrap_or(u32::MAX));
        [size(sizes.data, usual[0]), size(sizes.acks, usual[1])]
    }
}

/// The fields of a packet that RFC 1144 compresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Window.
    pub window: u32,
    /// Bytes of payload.
    pub len: u32,
    /// Whether it has SYN, FIN or RST; such packets are not compressed.
    pub control: bool,
}

/// The number of packets that bypass compressor and decompressor: those with SYN, FIN or RST (RFC 1144 §3.2.3).
const BYPASSES: u32 = 0;

/// The end of one direction at which headers are compressed with differences.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compressor {
    last: Option<Shape>,
    number: u32,
}

impl Compressor {
    /// The number of a packet, and whether its header is compressed. Packets with SYN, FIN or RST are sent whole and change no state;
    /// their number is 0.
    pub fn pack(&mut self, shape: Shape) -> (u32, bool) {
        if shape.control {
            return (BYPASSES, false);
        }
        // After the highest number comes 1.
        self.number = self.number.checked_add(1).unwrap_or(1);
        let compressed = self.last.replace(shape).is_some_and(|last| differs(&last, &shape));
        (self.number, compressed)
    }
}

/// Whether the difference to the previous packet can be sent (RFC 1144 §3.2.3).
fn differs(last: &Shape, new: &Shape) -> bool {
    let (seq, ack) = (new.seq.wrapping_sub(last.seq), new.ack.wrapping_sub(last.ack));
    if seq > 0xffff || ack > 0xffff {
        return false;
    }
    // If nothing has changed, the packet is data after an acknowledgement, or a retransmission, which has a complete header.
    (seq, ack, new.window) != (0, 0, last.window) || new.len > 0 && last.len == 0
}

/// The decompressing end of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decompressor {
    last: Option<u32>,
    lost: u64,
}

impl Decompressor {
    /// Whether a packet can be decompressed. After a loss none can, until a complete header arrives (RFC 1144 §4.1). A packet that bypasses the
    /// decompressor is read, and changes nothing (§3.2.4).
    pub fn reads(&mut self, number: u32, compressed: bool) -> bool {
        if number == BYPASSES {
            return true;
        }
        let reads = !compressed || self.last.is_some_and(|last| number == last.checked_add(1).unwrap_or(1));
        self.last = reads.then_some(number);
        self.lost += u64::from(!reads);
        reads
    }
    /// Packets that could not be decompressed.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: u32) -> Shape {
        Shape { seq: 1000 * n, len: 1000, window: 9, ..Shape::default() }
    }

    #[test]
    fn what_goes_on_is_compressed_and_what_goes_back_is_not() {
        let mut c = Compressor::default();
        let syn = Shape { control: true, ..data(0) };
        let steps = [
            (syn, false),
            // There is no previous packet.
            (data(0), false),
            (data(1), true),
            // A gap is a valid difference; a repetition is not.
            (data(3), true),
            (data(2), false),
            (data(4), true),
            (data(4), false),
            (Shape { ack: 5, ..data(4) }, true),
            (Shape { ack: 70_000, ..data(4) }, false),
            (Shape { ack: 70_000, window: 10, ..data(4) }, true),
            (Shape { ack: 70_000, window: 10, len: 0, ..data(4) }, false),
            (Shape { ack: 70_000, window: 10, ..data(4) }, true),
            (Shape { control: true, ..data(5) }, false),
            // The FIN is not what the next packet is compared to.
            (Shape { ack: 70_001, window: 10, ..data(4) }, true),
        ];
        let mut number = 0;
        for (shape, compressed) in steps {
            number += u32::from(!shape.control);
            assert_eq!(c.pack(shape), (if shape.control { 0 } else { number }, compressed), "{number}");
        }
    }

    #[test]
    fn numbers_wrap_around_that_of_what_bypasses() {
        let (mut c, mut d) = (Compressor { last: None, number: u32::MAX - 1 }, Decompressor::default());
        let mut numbers = Vec::new();
        for n in 0..3 {
            let (number, compressed) = c.pack(data(n));
            numbers.push(number);
            assert!(d.reads(number, compressed), "{n}");
        }
        assert_eq!(numbers, [u32::MAX, 1, 2]);
    }

    #[test]
    fn what_bypasses_the_decompressor_changes_nothing_there() {
        let mut d = Decompressor::default();
        // A lost FIN makes nothing unreadable, and one that arrives after a loss makes nothing readable.
        let arrives =
            [(0, false), (1, false), (2, true), (3, true), (5, true), (0, false), (6, true), (7, false)];
        let read: Vec<bool> = arrives.iter().map(|&(n, c)| d.reads(n, c)).collect();
        assert_eq!(read, [true, true, true, true, false, true, false, true]);
        assert_eq!(d.lost(), 2);
    }

    #[test]
    fn a_loss_hides_everything_until_a_whole_header() {
        let mut d = Decompressor::default();
        let arrives = [(1, false), (2, true), (4, true), (5, true), (6, true), (7, false), (8, true)];
        let read: Vec<bool> = arrives.iter().map(|&(n, c)| d.reads(n, c)).collect();
        assert_eq!((read, d.lost()), (vec![true, true, false, false, false, true, true], 3));
    }
}
