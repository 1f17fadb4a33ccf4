//! The ModCod of a carrier while its signal changes.

use super::carrier::Carrier;
use alloc::collections::VecDeque;
use skyhaul_base::{Instant, Rate};

/// A carrier, its ModCod in use, and the choices that have not taken effect yet.
#[derive(Clone, Debug)]
pub(super) struct Adaptation {
    carrier: Carrier,
    /// The last chosen ModCod, and the one in use.
    chosen: usize,
    used: usize,
    coming: VecDeque<(Instant, usize)>,
}

impl Adaptation {
    /// The carrier at the start of a run, with the ModCod for an attenuation in dB.
    pub(super) fn start(carrier: Carrier, attenuation: f64) -> Self {
        let chosen = carrier.choose(attenuation, None);
        Self { carrier, chosen, used: chosen, coming: VecDeque::new() }
    }

    /// When the next choice takes effect.
    pub(super) fn due(&self) -> Instant {
        self.coming.front().map_or(Instant::MAX, |c| c.0)
    }

    /// The choice that is due takes effect.
    pub(super) fn take_effect(&mut self) {
        if let Some((_, modcod)) = self.coming.pop_front() {
            self.used = modcod;
        }
    }

    /// The attenuation has changed.
    pub(super) fn choose(&mut self, at: Instant, attenuation: f64) {
        let chosen = self.carrier.choose(attenuation, Some(self.chosen));
        if chosen != self.chosen {
            self.chosen = chosen;
            self.coming.push_back((at + self.carrier.reaction(), chosen));
        }
    }

    /// The rate with the ModCod in use; `None` if the symbol rate is unknown.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.carrier.rate(self.used)
    }

    /// Loss of a packet of 188 bytes with the ModCod in use.
    pub(super) fn loss(&self, attenuation: f64) -> f64 {
        self.carrier.loss(attenuation, self.used)
    }

    /// Es/N0 in dB.
    pub(super) fn es_n0(&self, attenuation: f64) -> f64 {
        self.carrier.es_n0(attenuation)
    }

    /// Bits per symbol of the ModCod in use.
    pub(super) fn efficiency(&self) -> f64 {
        self.carrier.efficiency(self.used)
    }
}
