//! The erasure code of blocks: maximum distance separable, any k symbols of a block suffice.

use core::fmt::Debug;
use core::marker::PhantomData;
use skyhaul_path::PacketView;

/// A code, and the forms that datagrams have at both ends.
pub trait Code {
    /// A datagram at the sender.
    type Sent: PacketView + Clone + Debug;
    /// A datagram at the receiver.
    type Received: Clone + Debug;
    /// A repair symbol.
    type Symbol: Debug;

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

/// Size of a repair symbol in bytes: that of the longest datagram with two bytes for its length, rounded up to whole elements of
/// GF(2^16).
pub(crate) fn symbol_size(longest: u32) -> u32 {
    (longest + 3) & !1
}

/// A code that only counts its symbols.
#[derive(Clone, Copy, Debug)]
pub struct Counted<P>(PhantomData<P>);

impl<P> Default for Counted<P> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<P: PacketView + Clone + Debug> Code for Counted<P> {
    type Sent = P;
    type Received = ();
    /// The size of a symbol in bytes.
    type Symbol = u32;

    fn encode<'a>(&mut self, block: impl ExactSizeIterator<Item = &'a P>, parity: u8, symbols: &mut Vec<u32>)
    where
        P: 'a,
    {
        let size = symbol_size(block.map(PacketView::size).max().unwrap_or(0));
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
    use super::{Code, symbol_size};
    use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
    use skyhaul_path::PacketView;
    use std::sync::Arc;

    /// A datagram with what the gateway reads of its outermost header.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Datagram {
        /// All of it, from its first header on.
        pub bytes: Vec<u8>,
        /// A number common to its flow, for queues that separate flows.
        pub flow: u32,
        /// Its transport is capable of ECN.
        pub capable: bool,
        /// The queue has marked it: the gateway has to set CE in its header before it sends it.
        pub marked: bool,
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

    /// A Reed-Solomon code over GF(2^16).
    #[derive(Clone, Copy, Debug, Default)]
    pub struct ReedSolomon;

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
