//! The erasure code of blocks: maximum distance separable, any k symbols of a block suffice.

use core::fmt::Debug;
use core::marker::PhantomData;
use skyhaul_base::Instant;
use skyhaul_path::PacketView;

/// A code, and the forms that datagrams have at both ends.
pub trait Code {
    /// A datagram at the sender.
    type Sent: PacketView + Clone + Debug;
    /// A datagram at the receiver.
    type Received: Clone + Debug;
    /// A repair symbol.
    type Symbol: Debug;

    /// A datagram leaves the queue as number `seq`, and takes the form in which it is carried: at most `room` bytes.
    fn depart(&mut self, now: Instant, seq: u64, datagram: &mut Self::Sent, room: u32);
    /// Another datagram joins it, so that one symbol carries both; false if that cannot be.
    fn join(
        &mut self,
        now: Instant,
        seq: u64,
        datagram: &mut Self::Sent,
        other: &Self::Sent,
        room: u32,
    ) -> bool;
    /// Size of a datagram that has left the queue, bytes.
    fn carried(&self, datagram: &Self::Sent) -> u32 {
        datagram.size()
    }
    /// The other end has what datagram `seq` has installed ([`Arrived::Installed`]).
    fn acknowledged(&mut self, now: Instant, seq: u64);
    /// Hands out the datagrams that datagram `seq` carried.
    fn arrive(&mut self, seq: u64, carried: Self::Received, each: &mut impl FnMut(Self::Received))
    -> Arrived;

    /// Appends `parity` repair symbols of a block.
    fn encode<'a>(
        &mut self,
        block: impl ExactSizeIterator<Item = &'a Self::Sent>,
        parity: u8,
        symbols: &mut Vec<Self::Symbol>,
    ) where
        Self::Sent: 'a;
    /// Size of a symbol in bytes.
    fn size(symbol: &Self::Symbol) -> u32;
    /// The missing datagrams of a block with `parity` repair symbols, from as many `symbols` as are missing, each with its
    /// index. `None` if the symbols contradict each other.
    fn decode(
        &mut self,
        source: &[Option<Self::Received>],
        parity: u8,
        symbols: &[(u8, Self::Symbol)],
    ) -> Option<Vec<(u16, Self::Received)>>;
}

/// What the other end has to know of a datagram that was carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Nothing.
    Whole,
    /// It has installed something to which later ones refer.
    Installed,
    /// What it refers to is not there, or it contradicts itself.
    Unreadable,
}

/// Size of a repair symbol in bytes: that of the longest datagram with two bytes for its length, rounded up to whole elements of
/// GF(2^16).
pub(crate) fn symbol_size(longest: u32) -> u32 {
    (longest + 3) & !1
}

/// A code that only counts its symbols.
#[derive(Clone, Copy, Debug)]
pub struct Counted<P> {
    elided: u32,
    packets: PhantomData<P>,
}

impl<P> Counted<P> {
    /// A code for datagrams that lose so many bytes of their headers, but never more than half of their bytes.
    #[must_use]
    pub fn eliding(elided: u32) -> Self {
        Self { elided, packets: PhantomData }
    }
}

impl<P> Default for Counted<P> {
    fn default() -> Self {
        Self::eliding(0)
    }
}

impl<P: PacketView + Clone + Debug> Code for Counted<P> {
    type Sent = P;
    type Received = ();
    /// The size of a symbol in bytes.
    type Symbol = u32;

    fn depart(&mut self, _: Instant, _: u64, _: &mut P, _: u32) {}
    fn join(&mut self, _: Instant, _: u64, _: &mut P, _: &P, _: u32) -> bool {
        false
    }
    fn carried(&self, datagram: &P) -> u32 {
        datagram.size() - self.elided.min(datagram.size() / 2)
    }
    fn acknowledged(&mut self, _: Instant, _: u64) {}
    fn arrive(&mut self, _: u64, (): (), each: &mut impl FnMut(())) -> Arrived {
        each(());
        Arrived::Whole
    }
    fn encode<'a>(&mut self, block: impl ExactSizeIterator<Item = &'a P>, parity: u8, symbols: &mut Vec<u32>)
    where
        P: 'a,
    {
        let size = symbol_size(block.map(|d| self.carried(d)).max().unwrap_or(0));
        symbols.extend(core::iter::repeat_n(size, parity.into()));
    }
    fn size(symbol: &u32) -> u32 {
        *symbol
    }
    fn decode(&mut self, source: &[Option<()>], _: u8, symbols: &[(u8, u32)]) -> Option<Vec<(u16, ())>> {
        let missing = (0..).zip(source).filter(|(_, s)| s.is_none()).map(|(i, _)| (i, ()));
        let missing: Vec<_> = missing.collect();
        (missing.len() <= symbols.len()).then_some(missing)
    }
}

#[cfg(feature = "computed")]
pub use computed::{Datagram, ReedSolomon};

#[cfg(feature = "computed")]
mod computed {
    use super::{Arrived, Code, symbol_size};
    use crate::compress::{self, Compressor, Decompressor};
    use crate::ip;
    use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
    use skyhaul_base::Instant;
    use skyhaul_path::PacketView;
    use std::sync::Arc;

    /// A datagram with what the gateway reads of its outermost header.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Datagram {
        /// All of it, from its first header on; once it has left the queue, in the form in which it is carried.
        pub bytes: Vec<u8>,
        /// A number common to its flow, for queues that separate flows.
        pub flow: u32,
        /// Its transport is capable of ECN.
        pub capable: bool,
        /// The queue has marked it: its header says so as soon as it leaves the queue.
        pub marked: bool,
        /// Its traffic class: DSCP and ECN field.
        pub class: u8,
        /// Its flow may be discarded first (RFC 8622).
        pub low_priority: bool,
    }

    impl AsRef<[u8]> for Datagram {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }

    impl PacketView for Datagram {
        fn size(&self) -> u32 {
            u32::try_from(self.bytes.len()).unwrap_or(u32::MAX)
        }
        fn low_priority(&self) -> bool {
            self.low_priority
        }
        fn flow(&self) -> u32 {
            self.flow
        }
        fn is_ect(&self) -> bool {
            self.capable
        }
        fn mark_ce(&mut self) {
            self.marked = true;
        }
    }

    /// A Reed-Solomon code over GF(2^16). By default datagrams are carried as they are.
    #[derive(Debug, Default)]
    pub struct ReedSolomon {
        headers: Option<Box<Headers>>,
    }

    /// Both directions of header compression.
    #[derive(Debug)]
    struct Headers {
        /// `None`: this end leaves headers as they are.
        compressor: Option<Compressor>,
        decompressor: Decompressor,
        /// Kept for its memory.
        form: Vec<u8>,
    }

    impl Headers {
        /// The form of a packet as datagram `seq`.
        fn form(&mut self, now: Instant, seq: u64, packet: &[u8], room: u32) -> &[u8] {
            self.form.clear();
            match &mut self.compressor {
                Some(compressor) => compressor.compress(now, seq, packet, room as usize, &mut self.form),
                None => self.form.extend_from_slice(packet),
            }
            &self.form
        }
    }

    impl ReedSolomon {
        /// A code whose datagrams are IP packets with [compressed headers](crate::compress), which the other end has to
        /// restore in the same way. Without `compress` this end only restores those of the other one.
        #[must_use]
        pub fn with_headers(compress: bool) -> Self {
            let compressor = compress.then(Compressor::default);
            let headers = Headers { compressor, decompressor: Decompressor::default(), form: Vec::new() };
            Self { headers: Some(Box::new(headers)) }
        }
    }

    /// The queue's mark goes into the header, so that the code covers it.
    fn mark(datagram: &mut Datagram) {
        if datagram.marked && ip::mark(&mut datagram.bytes) {
            datagram.class = ip::class(&datagram.bytes);
        }
    }

    /// A datagram as a source symbol: its length, itself, zeros (the ADU information of RFC 6363 §5.3).
    fn source_symbol(datagram: &[u8], size: usize) -> Vec<u8> {
        let mut symbol = Vec::with_capacity(size);
        symbol.extend((datagram.len() as u16).to_be_bytes());
        symbol.extend(datagram);
        symbol.resize(size, 0);
        symbol
    }

    /// The datagram in a source symbol.
    fn datagram(symbol: &[u8]) -> Option<Arc<[u8]>> {
        let (len, rest) = symbol.split_first_chunk()?;
        rest.get(..usize::from(u16::from_be_bytes(*len))).map(Arc::from)
    }

    impl Code for ReedSolomon {
        type Sent = Datagram;
        type Received = Arc<[u8]>;
        type Symbol = Vec<u8>;

        fn depart(&mut self, now: Instant, seq: u64, datagram: &mut Datagram, room: u32) {
            mark(datagram);
            if let Some(headers) = &mut self.headers {
                let form = headers.form(now, seq, &datagram.bytes, room);
                datagram.bytes.clear();
                datagram.bytes.extend_from_slice(form);
            }
        }
        fn join(
            &mut self,
            now: Instant,
            seq: u64,
            datagram: &mut Datagram,
            other: &Datagram,
            room: u32,
        ) -> bool {
            let Some(headers) = &mut self.headers else { return false };
            let mut other = other.clone();
            mark(&mut other);
            let alike = |d: &Datagram| (d.class, d.low_priority);
            // In the worst case none of the two is compressed.
            let fits = compress::joined_size(&datagram.bytes, &other.bytes) <= room as usize;
            if alike(datagram) != alike(&other) || !fits {
                return false;
            }
            let form = headers.form(now, seq, &other.bytes, other.size() + compress::INSTALL_SIZE);
            compress::join(&mut datagram.bytes, form);
            true
        }
        fn acknowledged(&mut self, now: Instant, seq: u64) {
            if let Some(compressor) = self.headers.as_mut().and_then(|h| h.compressor.as_mut()) {
                compressor.acknowledged(now, seq);
            }
        }
        fn arrive(&mut self, seq: u64, carried: Arc<[u8]>, each: &mut impl FnMut(Arc<[u8]>)) -> Arrived {
            let Some(headers) = &mut self.headers else {
                each(carried);
                return Arrived::Whole;
            };
            let Some(forms) = compress::forms(&carried) else { return Arrived::Unreadable };
            let (mut arrived, mut complete) = (Arrived::Whole, true);
            for form in forms {
                let Some(restored) = headers.decompressor.restore(seq, form) else {
                    arrived = Arrived::Unreadable;
                    continue;
                };
                match restored.installs {
                    Some(true) if arrived == Arrived::Whole => arrived = Arrived::Installed,
                    // One acknowledgement is for all that a datagram installs.
                    Some(false) => complete = false,
                    _ => {}
                }
                each(Arc::from(restored.packet));
            }
            if arrived == Arrived::Installed && !complete { Arrived::Whole } else { arrived }
        }

        fn encode<'a>(
            &mut self,
            block: impl ExactSizeIterator<Item = &'a Datagram>,
            parity: u8,
            symbols: &mut Vec<Vec<u8>>,
        ) {
            let block: Vec<&Datagram> = block.collect();
            let size = symbol_size(block.iter().map(|d| d.size()).max().unwrap_or(0)) as usize;
            let Ok(mut encoder) = ReedSolomonEncoder::new(block.len(), parity.into(), size) else { return };
            for datagram in block {
                if encoder.add_original_shard(source_symbol(&datagram.bytes, size)).is_err() {
                    return;
                }
            }
            if let Ok(result) = encoder.encode() {
                symbols.extend(result.recovery_iter().map(<[u8]>::to_vec));
            }
        }
        fn size(symbol: &Vec<u8>) -> u32 {
            u32::try_from(symbol.len()).unwrap_or(u32::MAX)
        }
        fn decode(
            &mut self,
            source: &[Option<Arc<[u8]>>],
            parity: u8,
            symbols: &[(u8, Vec<u8>)],
        ) -> Option<Vec<(u16, Arc<[u8]>)>> {
            let size = symbols.first()?.1.len();
            if source.iter().flatten().any(|s| s.len() + 2 > size) {
                return None;
            }
            let mut decoder = ReedSolomonDecoder::new(source.len(), parity.into(), size).ok()?;
            for (i, datagram) in source.iter().enumerate() {
                if let Some(datagram) = datagram {
                    decoder.add_original_shard(i, source_symbol(datagram, size)).ok()?;
                }
            }
            for (i, symbol) in symbols {
                decoder.add_recovery_shard((*i).into(), symbol).ok()?;
            }
            let result = decoder.decode().ok()?;
            let missing = (0..).zip(source).filter(|(_, s)| s.is_none());
            missing.map(|(i, _)| Some((i, datagram(result.restored_original(usize::from(i))?)?))).collect()
        }
    }
}
