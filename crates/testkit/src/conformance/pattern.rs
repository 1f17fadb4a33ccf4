//! The bytes of a stream: each depends on its offset, so that shifted, repeated or foreign bytes show.

/// The byte at `offset` of a stream.
#[must_use]
pub fn byte(offset: i64) -> u8 {
    (offset ^ (offset >> 8) ^ (offset >> 16).wrapping_mul(31)) as u8
}

/// `len` bytes of a stream from `offset` on.
#[must_use]
pub fn bytes(offset: i64, len: usize) -> Vec<u8> {
    (offset..).take(len).map(byte).collect()
}

/// The first place where `data` is not what stands at `offset` of a stream.
#[must_use]
pub fn first_difference(offset: i64, data: &[u8]) -> Option<i64> {
    (offset..).zip(data).find(|(at, b)| **b != byte(*at)).map(|(at, _)| at)
}
