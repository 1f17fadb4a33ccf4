//! Already acknowledged bytes that a dummy copies. A stream offset must have the same content in every
//! transmission; otherwise a middlebox may take the connection for an attack.

use super::Engine;
use crate::store::Store;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes of one range of the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Copy {
    from: u64,
    bytes: Vec<u8>,
}

impl Copy {
    /// Copies the bytes available in `[seq, seq + out.len())`, with zeros elsewhere.
    pub(super) fn read(&self, seq: u64, out: &mut [u8]) {
        for (at, b) in (seq..).zip(out) {
            let kept = at.checked_sub(self.from).and_then(|at| usize::try_from(at).ok());
            *b = kept.and_then(|at| self.bytes.get(at)).copied().unwrap_or(0);
        }
    }
}

impl<S: Store> Engine<S> {
    /// `ack` is about to release bytes: keeps those that the next dummy copies.
    pub(super) fn keep_copied(&mut self, una: u64, ack: u64) {
        let Some((seq, len)) = self.prober.copied() else { return };
        let end = seq + u64::from(len);
        // Once per segment: when its last byte is released, all of it is still there or here.
        if ack < end || una >= end {
            return;
        }
        let mut bytes = alloc::vec![0; len as usize];
        self.payload(seq, &mut bytes);
        self.copy = Some(Box::new(Copy { from: seq, bytes }));
    }
}
