//! Compressed headers of a leg: packets are shorter on all of its links and regain their size at its end.

use crate::packet::parcel::Parcel;
use skyhaul_relay::headers::{Compression, Compressor, Decompressor, Shape};
use skyhaul_tcp::{Flags, Segment};

/// Both directions of a leg with compressed headers.
#[derive(Debug)]
pub(crate) struct Headers {
    /// The compression is differential (RFC 1144): headers are complete or compressed, and a lost packet makes later
    /// ones unreadable.
    differences: bool,
    /// Bytes saved per packet: packets with data, SYN, FIN or RST; all others.
    saves: [u32; 2],
    /// To the receiver, to the sender.
    ends: [(Compressor, Decompressor); 2],
}

impl Headers {
    /// For packets with `header` bytes of uncompressed headers.
    pub(crate) fn new(rule: &Compression, header: u32) -> Self {
        Self {
            differences: matches!(rule, Compression::Vj(_)),
            saves: rule.sizes().map(|size| header.saturating_sub(size)),
            ends: Default::default(),
        }
    }
    /// Packets that could not be decompressed.
    pub(crate) fn lost(&self) -> u64 {
        self.ends.iter().map(|(_, d)| d.lost()).sum()
    }

    fn saved(&self, parcel: Parcel) -> u32 {
        self.saves[usize::from(parcel.is_bare())]
    }
    /// A segment leaves. SYN and RST have complete headers, since the sender cannot know what the peer supports.
    pub(crate) fn shorten(&mut self, parcel: Parcel, segment: &Segment) -> Parcel {
        let opens = segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST);
        let mut parcel = parcel;
        let mut compressed = !opens;
        if self.differences {
            let (seq, ack) = (segment.seq.0, segment.ack.0);
            let control = opens || segment.flags.has(Flags::FIN);
            let shape = Shape { seq, ack, window: segment.window, len: segment.len, control };
            let end = &mut self.ends[usize::from(parcel.backward())].0;
            let (number, differs) = end.pack(shape);
            parcel.set_note(number, differs);
            compressed = differs;
        }
        if compressed {
            parcel.shorten(self.saved(parcel));
        }
        parcel
    }
    /// Restores the size of a parcel that has arrived.
    pub(crate) fn lengthen(&self, parcel: Parcel) -> Parcel {
        let mut parcel = parcel;
        let compressed = if self.differences { parcel.note().1 } else { !parcel.opens_or_resets() };
        if compressed {
            parcel.lengthen(self.saved(parcel));
        }
        parcel
    }
    /// Whether the receiving end can decompress the headers of a parcel that has arrived.
    pub(crate) fn reads(&mut self, parcel: Parcel) -> bool {
        let (number, compressed) = parcel.note();
        !self.differences || self.ends[usize::from(parcel.backward())].1.reads(number, compressed)
    }
}
