//! A path with a maximum transmission unit that it does not report. Longer packets vanish silently (a black hole:
//! RFC 2923 §2.1), or are fragmented, and then all fragments must arrive (RFC 4963 §1; Kent, Mogul 1987).
//!
//! A lost fragment loses the packet, and each fragment needs its own header: all but the first add 20 bytes on the
//! link. The queue before the link holds whole packets, and fragments are reassembled at its end.

use super::model::{Losses, Model};
use crate::packet::PacketView;
use crate::param::{ParamError, probability, within};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use skyhaul_base::Rng;
#[cfg(feature = "schema")]
use skyhaul_base::amount::{Probability, Size};
use skyhaul_base::math;
use skyhaul_base::rng::Chance;

/// Header of IPv4 without options, which every fragment has, bytes.
const HEADER: u64 = 20;
/// Minimum MTU (RFC 791 §3.2), and maximum packet length, bytes.
const LEAST: f64 = 68.0;
const LONGEST: f64 = 65_535.0;

/// A maximum transmission unit (MTU): longer packets are lost without notice, or fragmented.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// The longest packet sent in one piece, including headers.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "Size"))]
    pub mtu: u64,
    /// Fragment longer packets; each fragment can be lost. Without it, longer packets are lost.
    #[cfg_attr(feature = "serde", serde(default))]
    pub fragments: bool,
    /// Loss probability of an unfragmented packet, and of each fragment.
    #[cfg_attr(feature = "serde", serde(default, with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(default, with = "Probability"))]
    pub p: f64,
}

impl Config {
    /// Number of pieces of a packet of `size` bytes: the payload of all but the last is a multiple of eight bytes, and
    /// the last one may fill the MTU (RFC 791 §3.2).
    #[must_use]
    pub fn pieces(&self, size: u32) -> u64 {
        let size = u64::from(size);
        if size <= self.mtu {
            return 1;
        }
        let last = self.mtu.saturating_sub(HEADER);
        let most = (last / 8 * 8).max(8);
        1 + (size.saturating_sub(HEADER) - last).div_ceil(most)
    }
    /// Probability that a packet of `size` bytes is lost: 1 − (1 − p)^n for n pieces.
    fn loss(&self, size: u32) -> f64 {
        match self.pieces(size) {
            1 => self.p,
            _ if !self.fragments => 1.0,
            _ if self.p >= 1.0 => 1.0,
            n => -math::expm1(n as f64 * math::ln_1p(-self.p)),
        }
    }
}

/// Loses packets that are too long, or that lose a fragment. One draw per packet that may be lost.
#[derive(Clone, Debug)]
pub struct Narrow {
    config: Config,
    /// Size of the last packet, and the loss probability of that size.
    last: (u32, Chance),
}

impl Model for Config {
    type Losses = Box<Narrow>;
    type Invalid = ParamError;
    type Canonical = Self;

    fn validate(&self) -> Result<(), ParamError> {
        within("mtu", self.mtu as f64, LEAST, LONGEST)?;
        probability("p", self.p).map(|_| ())
    }
    fn build(&self) -> Box<Narrow> {
        Box::new(Narrow { config: *self, last: (0, Chance::new(self.p)) })
    }
    fn canonical(self) -> Self {
        self
    }
    fn mean_loss(&self, size: u32) -> f64 {
        self.loss(size)
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        let fate = if self.fragments { "go in fragments" } else { "vanish" };
        let longer = format!("packets of more than {} bytes {fate}", self.mtu);
        if self.p > 0.0 { format!("{longer}, losses with probability {}", number(self.p)) } else { longer }
    }
}

impl Losses for Box<Narrow> {
    fn longest_whole(&self) -> u32 {
        if self.config.fragments { self.config.mtu as u32 } else { u32::MAX }
    }
    fn on_wire(&self, size: u32) -> u32 {
        let headers = (self.config.pieces(size) - 1) * HEADER;
        size.saturating_add(if self.config.fragments { headers as u32 } else { 0 })
    }
    #[inline(never)]
    fn loses(&mut self, p: &impl PacketView, rng: &mut Rng) -> bool {
        let size = p.size();
        if self.last.0 != size {
            self.last = (size, Chance::new(self.config.loss(size)));
        }
        let chance = self.last.1;
        !chance.is_never() && rng.chance(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Config as Any;

    #[derive(Default)]
    struct Packet(u32);
    impl PacketView for Packet {
        fn size(&self) -> u32 {
            self.0
        }
        fn low_priority(&self) -> bool {
            false
        }
        fn flow(&self) -> u32 {
            0
        }
    }

    #[test]
    fn pieces_as_rfc_791_cuts_them() {
        let cut = |mtu| Config { mtu, fragments: true, p: 0.0 };
        // 1500 bytes are 1480 of payload; through 576 bytes 552 at a time, through 1006 984 at a time.
        for (mtu, size, pieces) in
            [(1500, 1500, 1), (1499, 1500, 2), (1006, 1500, 2), (576, 1500, 3), (576, 576, 1), (68, 1500, 31)]
        {
            assert_eq!(cut(mtu).pieces(size), pieces, "{size} bytes through {mtu}");
        }
        // The last piece need not be a multiple of eight: 984 and 986 bytes of payload.
        assert_eq!([1990, 1991].map(|size| cut(1006).pieces(size)), [2, 3]);
    }

    #[test]
    fn what_is_too_long_vanishes_and_what_is_not_draws_nothing() {
        let mut rng = Rng::stream(1, "links.sat.error");
        let before = rng.clone();
        let mut model = Any::from(Config { mtu: 1000, fragments: false, p: 0.0 }).build();
        assert!((0..10).all(|_| !model.loses(&Packet(1000), &mut rng)));
        assert_eq!(rng, before);
        assert!((0..10).all(|_| model.loses(&Packet(1001), &mut rng)));
        assert!(!model.loses(&Packet(40), &mut rng) && !model.is_lossless());
    }

    #[test]
    fn a_lost_fragment_loses_the_packet() {
        let config = Config { mtu: 576, fragments: true, p: 0.1 };
        // Three pieces of 1500 bytes: 1 - 0.9^3 = 0.271.
        assert!((config.mean_loss(1500) - 0.271).abs() < 1e-12);
        let mut rng = Rng::stream(7, "links.sat.error");
        let mut model = Any::from(config).build();
        let mut lost = |size| (0..100_000).filter(|_| model.loses(&Packet(size), &mut rng)).count() as f64;
        // Five standard deviations of a binomial count.
        let near = |count: f64, p: f64| (count - 1e5 * p).abs() < 5.0 * (1e5 * p * (1.0 - p)).sqrt();
        let (long, short) = (lost(1500), lost(500));
        assert!(near(long, 0.271) && near(short, 0.1), "{long} {short}");
    }

    #[test]
    fn each_fragment_but_the_first_takes_a_header_more() {
        let cut = |fragments| Any::from(Config { mtu: 576, fragments, p: 0.0 }).build();
        // 1500 bytes through 576: pieces of 572, 572 and 396 bytes, headers included.
        for (size, bytes) in [(40, 40), (576, 576), (577, 597), (1500, 572 + 572 + 396)] {
            assert_eq!(cut(true).on_wire(size), bytes, "{size} bytes");
        }
        assert_eq!((cut(true).longest_whole(), cut(false).longest_whole()), (576, u32::MAX));
    }

    #[test]
    fn a_path_that_carries_nothing_is_refused() {
        for (mtu, p) in [(67, 0.0), (65_536, 0.0), (1000, 1.5), (1000, f64::NAN)] {
            assert!(Config { mtu, fragments: true, p }.validate().is_err(), "{mtu} {p}");
        }
        assert_eq!(Config { mtu: 1000, fragments: true, p: 1.0 }.mean_loss(1500), 1.0);
    }
}
