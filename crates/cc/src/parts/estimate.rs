//! What the relatives of Westwood estimate, as others compare it.

use skyhaul_base::Rate;

/// An estimate in segments per second as a rate of payload, where a full segment has `smss` bytes; `None` of 0, which is
/// where they begin.
#[must_use]
pub fn payload_rate(segments_per_second: f64, smss: u32) -> Option<Rate> {
    let bits = 8.0 * f64::from(smss) * segments_per_second;
    (bits > 0.0).then(|| Rate::from_bits_per_sec(bits as u64))
}
