//! Compressed headers of a leg: packets are shorter on all of its links and regain their size at its end.

use crate::packet::parcel::Parcel;
use skyhaul_relay::headers::{Compression, Compressor, Decompressor, Shape};
use skyhaul_tcp::{Flags, Segment};

/// Both directions of a leg with compressed headers.
#[derive(Debug)]
pub(crate) struct Headers {
    differences: bool,
    /// Bytes saved per packet: data, acknowledgements.
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

    fn saved(&self, parcel: &Parcel) -> u32 {
        self.saves[usize::from(parcel.only_acknowledges())]
    }
    /// A segment leaves. SYN and RST have complete headers, since the sender cannot know what the peer supports.
    pub(crate) fn shorten(&mut self, parcel: &mut Parcel, segment: &Segment) {
        let opens = segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST);
        parcel.header_compressed = !opens;
        if self.differences {
            let (seq, ack) = (segment.seq.0, segment.ack.0);
            let control = opens || segment.flags.has(Flags::FIN);
            let shape = Shape { seq, ack, window: segment.window, len: segment.len, control };
            let end = &mut self.ends[usize::from(parcel.backward())].0;
            (parcel.header_number, parcel.header_compressed) = end.pack(shape);
        }
        if parcel.header_compressed {
            parcel.shorten(self.saved(parcel));
        }
    }
    /// Restores the size of a parcel that has arrived.
    pub(crate) fn lengthen(&self, parcel: &mut Parcel) {
        if parcel.header_compressed {
            parcel.lengthen(self.saved(parcel));
        }
    }
    /// Whether it can be decompressed.
    pub(crate) fn reads(&mut self, parcel: &Parcel) -> bool {
        let decompressor = &mut self.ends[usize::from(parcel.backward())].1;
        !self.differences || decompressor.reads(parcel.header_number, parcel.header_compressed)
    }
}
