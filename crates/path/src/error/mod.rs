//! Losses of the channel.
//!
//! One draw per packet and link, in the order of departures. A lost packet has consumed queue space and
//! transmission time.

mod ber;
mod gilbert;
mod list;

use crate::packet::PacketView;
use crate::param::{ParamError, probability};
use alloc::boxed::Box;
use skyhaul_base::Rng;
use skyhaul_base::rng::Chance;

pub use ber::{Ber, packet_error_rate};
pub use gilbert::GilbertElliott;
pub use list::{List, Scope};

/// Which packets the channel corrupts.
///
/// Variants with more than a few bytes of state are boxed: most links have none, and links are scanned often.
#[derive(Clone, Debug, Default)]
pub enum ErrorModel {
    /// Independent bit errors.
    Ber(Box<Ber>),
    /// Bursts from a two-state Markov chain.
    GilbertElliott(Box<GilbertElliott>),
    /// Exactly the listed packets.
    List(Box<List>),
    /// No losses.
    #[default]
    None,
    /// Independent losses with the same probability for every packet.
    Per(Chance),
}

impl ErrorModel {
    /// Every packet is lost with probability `p`; [Peach §V] uses 0 to 1e-2, [Peach+] up to 5e-2.
    ///
    /// # Errors
    /// If `p` is no probability.
    pub fn per(p: f64) -> Result<Self, ParamError> {
        let p = probability("p", p)?;
        Ok(if p == 0.0 { Self::None } else { Self::Per(Chance::new(p)) })
    }
    /// Every bit is wrong with probability `ber`, and one wrong bit loses the packet. Residual errors, that
    /// is after any decoding: read as a channel error rate the same number means far fewer lost packets.
    ///
    /// # Errors
    /// If `ber` is no probability.
    pub fn ber(ber: f64) -> Result<Self, ParamError> {
        let model = Ber::new(ber)?;
        Ok(if ber == 0.0 { Self::None } else { Self::Ber(Box::new(model)) })
    }
    /// Loses the packets with the given transmission indices, counted from 0 over `scope`.
    #[must_use]
    pub fn list(indices: impl IntoIterator<Item = u64>, scope: Scope) -> Self {
        Self::List(Box::new(List::new(indices, scope)))
    }
    /// Bursts with a mean loss of `loss` and a mean length of `burst` packets (all packets lost in the bad
    /// state, none in the good one).
    ///
    /// # Errors
    /// As [`GilbertElliott::from_loss_and_burst`].
    pub fn bursts(loss: f64, burst: f64) -> Result<Self, ParamError> {
        GilbertElliott::from_loss_and_burst(loss, burst).map(Self::from)
    }

    /// True if the packet is lost; moves the model on by one packet.
    #[inline]
    pub fn loses(&mut self, p: &impl PacketView, rng: &mut Rng) -> bool {
        match self {
            Self::None => false,
            Self::Per(p) => rng.chance(*p),
            Self::Ber(m) => m.loses(p.size(), rng),
            Self::GilbertElliott(m) => m.loses(rng),
            Self::List(m) => m.loses(p.low_priority()),
        }
    }
}

impl From<GilbertElliott> for ErrorModel {
    fn from(m: GilbertElliott) -> Self {
        Self::GilbertElliott(Box::new(m))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Data;
    impl PacketView for Data {
        fn size(&self) -> u32 {
            1000
        }
        fn low_priority(&self) -> bool {
            false
        }
        fn flow(&self) -> u32 {
            0
        }
    }

    #[test]
    fn parameters_that_are_no_probabilities_are_refused() {
        for bad in [-1e-9, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(ErrorModel::per(bad).is_err() && ErrorModel::ber(bad).is_err(), "{bad}");
            assert!(GilbertElliott::new(0.1, 0.1, bad, 1.0).is_err(), "{bad}");
            assert!(GilbertElliott::new(bad, 0.1, 0.0, 1.0).is_err(), "{bad}");
        }
        assert!(matches!(
            ErrorModel::per(2.0),
            Err(ParamError::OutOfRange { name: "p", value: 2.0, min: 0.0, max: 1.0 })
        ));
    }

    #[test]
    fn a_lossless_channel_draws_nothing() {
        let mut rng = Rng::stream(1, "links.sat.error");
        let before = rng.clone();
        for mut model in [ErrorModel::None, ErrorModel::per(0.0).unwrap(), ErrorModel::ber(0.0).unwrap()] {
            assert!((0..100).all(|_| !model.loses(&Data, &mut rng)));
        }
        assert_eq!(rng, before);
    }

    #[test]
    fn losses_of_a_lower_rate_are_among_those_of_a_higher_one() {
        // Common random numbers: one draw per packet, compared with the probability.
        let run = |p| {
            let mut rng = Rng::stream(1, "links.sat.error");
            let mut model = ErrorModel::per(p).unwrap();
            (0..10_000).map(|_| model.loses(&Data, &mut rng)).collect::<alloc::vec::Vec<_>>()
        };
        let (rare, often) = (run(0.001), run(0.01));
        assert!(rare.iter().zip(&often).all(|(r, o)| *o || !r));
        assert!(rare.contains(&true));
    }
}
