//! A fading channel over time: its attenuation, and the ModCod of its carrier.

use super::Sky;
use super::carrier::Carrier;
use alloc::collections::VecDeque;
use skyhaul_base::{Instant, Rate};

/// A channel at a time of a run; [`Channel::step`] advances to the time of the next change.
#[derive(Clone, Debug)]
pub(super) struct Channel<S> {
    sky: S,
    adaptation: Option<Adaptation>,
}

/// A carrier, its ModCod in use, and the choices that have not taken effect yet.
#[derive(Clone, Debug)]
struct Adaptation {
    carrier: Carrier,
    /// The ModCod that was chosen last: an index of the carrier's table.
    chosen: usize,
    /// The ModCod in use.
    used: usize,
    /// ModCods that were chosen and are not in use yet, with the time from which they are.
    coming: VecDeque<(Instant, usize)>,
}

impl<S: Sky> Channel<S> {
    /// The channel at the start of a run, with or without a carrier.
    pub(super) fn start(sky: S, carrier: Option<Carrier>) -> Self {
        let adaptation = carrier.map(|carrier| {
            let chosen = carrier.choose(sky.weather().attenuation, None);
            Adaptation { carrier, chosen, used: chosen, coming: VecDeque::new() }
        });
        Self { sky, adaptation }
    }

    /// When the attenuation may change, or another ModCod takes effect; [`Instant::MAX`] means never.
    pub(super) fn next(&self) -> Instant {
        self.sky.next().min(self.due())
    }

    /// When the next choice takes effect.
    fn due(&self) -> Instant {
        self.adaptation.as_ref().and_then(|a| a.coming.front()).map_or(Instant::MAX, |c| c.0)
    }

    /// Advances to the next change; returns whether the ModCod in use has changed.
    pub(super) fn step(&mut self) -> bool {
        let (at, due) = (self.next(), self.due());
        match &mut self.adaptation {
            Some(adaptation) if due == at => {
                if let Some((_, modcod)) = adaptation.coming.pop_front() {
                    adaptation.used = modcod;
                }
                true
            }
            adaptation => {
                self.sky.step();
                if let Some(adaptation) = adaptation {
                    adaptation.choose(at, self.sky.weather().attenuation);
                }
                false
            }
        }
    }

    /// The rate with the ModCod in use; `None` if the symbol rate is unknown.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.adaptation.as_ref().and_then(|a| a.carrier.rate(a.used))
    }

    /// Loss probability of a packet of 188 bytes, an MPEG-TS packet as in the tables of DVB-S2.
    pub(super) fn loss(&self) -> f64 {
        let weather = self.sky.weather();
        let faded = self.adaptation.as_ref().map_or(0.0, |a| a.carrier.loss(weather.attenuation, a.used));
        // This form is exact if one of the two losses is zero.
        faded + (1.0 - faded) * weather.loss
    }

    /// Attenuation in dB.
    pub(super) fn attenuation(&self) -> f64 {
        self.sky.weather().attenuation
    }

    /// Es/N0 in dB, and bits per symbol of the ModCod in use; `None` without a carrier.
    pub(super) fn signal(&self) -> Option<(f64, f64)> {
        let a = self.adaptation.as_ref()?;
        Some((a.carrier.es_n0(self.attenuation()), a.carrier.efficiency(a.used)))
    }
}

impl Adaptation {
    /// Chooses a ModCod for a new attenuation. It is used after the reaction time of the carrier.
    fn choose(&mut self, at: Instant, attenuation: f64) {
        let chosen = self.carrier.choose(attenuation, Some(self.chosen));
        if chosen != self.chosen {
            self.chosen = chosen;
            self.coming.push_back((at + self.carrier.reaction(), chosen));
        }
    }
}
