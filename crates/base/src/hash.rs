//! A small stable hash (FNV-1a, 64 bit) for stream names and golden results; not for hostile input.

/// Incremental FNV-1a.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Mixes in bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
        }
    }
    /// Mixes in an integer (little-endian bytes, so the same on every target).
    pub fn write_u64(&mut self, x: u64) {
        self.write(&x.to_le_bytes());
    }
    /// Mixes in the bits of a real number.
    pub fn write_f64(&mut self, x: f64) {
        self.write_u64(x.to_bits());
    }
    /// The hash of everything written.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // Published FNV-1a test vectors.
        let of = |s: &str| {
            let mut h = Fnv::default();
            h.write(s.as_bytes());
            h.finish()
        };
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }
}
