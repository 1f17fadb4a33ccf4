//! Converts the estimates of Westwood and its relatives to comparable units.

use skyhaul_base::Rate;

/// An estimate in segments per second as a rate of payload, with `smss` bytes per full segment; `None` for 0, the
/// initial value.
#[must_use]
pub fn payload_rate(segments_per_second: f64, smss: u32) -> Option<Rate> {
    let bits = 8.0 * f64::from(smss) * segments_per_second;
    (bits > 0.0).then(|| Rate::from_bits_per_sec(bits as u64))
}
