//! Already acknowledged bytes that a dummy copies. A stream offset must have the same content in every
//! transmission; otherwise a middlebox may take the connection for an attack.

use alloc::vec::Vec;

/// Bytes of one range of the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Copy {
    pub(super) from: u64,
    pub(super) bytes: Vec<u8>,
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
