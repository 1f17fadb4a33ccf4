//! Effects of attenuation on a carrier: its signal fades, its noise rises, its ModCod changes or packets are lost.

use super::Invalid;
use super::modcod::{self, ModCod, Table};
use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
#[cfg(feature = "schema")]
use skyhaul_base::amount::{Decibels, SymbolRate, Temperature, Time};
use skyhaul_base::{Duration, Rate, math};

/// The name that means "the best one for the current signal".
pub const ADAPTIVE: &str = "adaptive";

/// A carrier: clear-sky signal, symbol rate, and choice of the ModCod.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CarrierSpec"))]
pub struct Config {
    /// Es/N0 under a clear sky.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::decibels"))]
    #[cfg_attr(feature = "schema", schemars(with = "Decibels"))]
    pub es_n0: f64,
    /// Symbol rate. By default an adaptive carrier has the one that gives the link's `rate` under a clear sky, and a
    /// link with a fixed ModCod keeps its `rate`.
    #[cfg_attr(
        feature = "serde",
        serde(default, with = "optional::symbol_rate", skip_serializing_if = "Option::is_none")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<SymbolRate>"))]
    pub symbol_rate: Option<f64>,
    /// "adaptive" (ACM, the default), or the name of a fixed ModCod.
    #[cfg_attr(feature = "serde", serde(default = "adaptive"))]
    #[cfg_attr(feature = "schema", schemars(with = "alloc::string::String"))]
    pub modcod: Cow<'static, str>,
    /// ModCods by ascending efficiency; by default those of DVB-S2 with normal frames.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub modcods: Option<Vec<ModCod>>,
    /// Margin of Es/N0 above the threshold of a ModCod for the adaptive choice; 1 dB by default.
    #[cfg_attr(feature = "serde", serde(default = "margin", with = "skyhaul_base::amount::plain::decibels"))]
    #[cfg_attr(feature = "schema", schemars(with = "Decibels"))]
    pub margin: f64,
    /// Hysteresis: additional Es/N0 for a step up; 0 dB by default.
    #[cfg_attr(feature = "serde", serde(default, with = "skyhaul_base::amount::plain::decibels"))]
    #[cfg_attr(feature = "schema", schemars(with = "Decibels"))]
    pub hysteresis: f64,
    /// Delay until an adaptive choice takes effect; one RTT of the link by default.
    #[cfg_attr(
        feature = "serde",
        serde(default, with = "optional::time", skip_serializing_if = "Option::is_none")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Time>"))]
    pub reaction: Option<Duration>,
    /// The attenuating medium also radiates noise into the antenna; true by default. Write false for an uplink, since
    /// a satellite's antenna sees the warm Earth anyway.
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    pub noise_rise: bool,
    /// Noise temperature of the receiver under a clear sky; 150 K by default.
    #[cfg_attr(
        feature = "serde",
        serde(default = "system_temperature", with = "skyhaul_base::amount::plain::temperature")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Temperature"))]
    pub system_temperature: f64,
    /// Temperature of the attenuating medium; 275 K by default.
    #[cfg_attr(
        feature = "serde",
        serde(default = "medium_temperature", with = "skyhaul_base::amount::plain::temperature")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Temperature"))]
    pub medium_temperature: f64,
}

#[cfg(feature = "serde")]
mod optional {
    //! Amounts that may be left out.

    macro_rules! optional {
        ($($name:ident: $plain:ty as $amount:ident;)*) => { $(
            pub(super) mod $name {
                use serde::{Deserialize, Deserializer, Serialize, Serializer};
                use skyhaul_base::amount::$amount;

                pub(crate) fn serialize<S: Serializer>(v: &Option<$plain>, s: S) -> Result<S::Ok, S::Error> {
                    v.map($amount).serialize(s)
                }
                pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<$plain>, D::Error> {
                    Ok(Option::<$amount>::deserialize(d)?.map(|q| q.0))
                }
            }
        )* };
    }
    optional! {
        symbol_rate: f64 as SymbolRate;
        time: skyhaul_base::Duration as Time;
    }
}

#[cfg(feature = "serde")]
fn adaptive() -> Cow<'static, str> {
    Cow::Borrowed(ADAPTIVE)
}
#[cfg(feature = "serde")]
fn margin() -> f64 {
    Config::default().margin
}
#[cfg(feature = "serde")]
fn yes() -> bool {
    true
}
#[cfg(feature = "serde")]
fn system_temperature() -> f64 {
    Config::default().system_temperature
}
#[cfg(feature = "serde")]
fn medium_temperature() -> f64 {
    Config::default().medium_temperature
}

impl Default for Config {
    /// An Es/N0 of 10 dB under a clear sky, and defaults for everything else.
    fn default() -> Self {
        Self {
            es_n0: 10.0,
            symbol_rate: None,
            modcod: Cow::Borrowed(ADAPTIVE),
            modcods: None,
            margin: 1.0,
            hysteresis: 0.0,
            reaction: None,
            noise_rise: true,
            system_temperature: 150.0,
            medium_temperature: 275.0,
        }
    }
}

/// The maximum reaction time of an adaptive choice (*our choice*).
const SLOWEST: Duration = Duration::from_secs(60);

impl Config {
    /// Refuses what is outside its domain.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        let bounded = |key, db: f64, min: f64, max: f64| {
            if db >= min && db <= max {
                return Ok(());
            }
            Err(Invalid { key, message: format!("{db} dB: write from {min} dB to {max} dB") })
        };
        bounded("carrier.es-n0", self.es_n0, -50.0, 100.0)?;
        bounded("carrier.margin", self.margin, 0.0, 50.0)?;
        bounded("carrier.hysteresis", self.hysteresis, 0.0, 50.0)?;
        if self.symbol_rate.is_some_and(|rate| !(1.0..=1e12).contains(&rate)) {
            let message = "write from 1 Bd to 1000 GBd".into();
            return Err(Invalid { key: "carrier.symbol-rate", message });
        }
        if let Some(reaction) = self.reaction.filter(|r| *r > SLOWEST) {
            let (given, most) = (reaction.as_secs_f64(), SLOWEST.as_secs_f64());
            let message = format!("{given} s: write at most {most} s");
            return Err(Invalid { key: "carrier.reaction", message });
        }
        for (key, kelvin) in [
            ("carrier.system-temperature", self.system_temperature),
            ("carrier.medium-temperature", self.medium_temperature),
        ] {
            if !(kelvin > 0.0 && kelvin <= 1e6) {
                let message = format!("{kelvin} K: write a temperature above 0 K, up to 1000000 K");
                return Err(Invalid { key, message });
            }
        }
        let table = self.table().map_err(|e| Invalid { key: "carrier.modcods", ..e })?;
        if self.modcod != ADAPTIVE && table.position(&self.modcod).is_none() {
            let names: Vec<&str> = table.all().iter().map(|m| m.name.as_ref()).collect();
            let message = format!(
                "{:?} is not a ModCod: write \"{ADAPTIVE}\" or one of {}",
                self.modcod,
                names.join(", ")
            );
            return Err(Invalid { key: "carrier.modcod", message });
        }
        Ok(())
    }

    /// The available ModCods.
    fn table(&self) -> Result<Table, Invalid> {
        self.modcods.as_ref().map_or_else(|| Ok(Table::dvb_s2()), |list| Table::new(list))
    }

    /// Increase of the noise in dB at an attenuation of `a` dB: 10·log10((T + Tm·(1 − 10^(−a/10)))/T), with the
    /// noise temperature T of the receiver and the temperature Tm of the attenuating medium (ITU-R P.618, sky noise
    /// by attenuation).
    #[must_use]
    pub fn noise_rise(&self, a: f64) -> f64 {
        if !self.noise_rise {
            return 0.0;
        }
        let glow = self.medium_temperature * (1.0 - math::pow(10.0, -a / 10.0));
        10.0 * math::ln(1.0 + glow / self.system_temperature) / core::f64::consts::LN_10
    }

    /// Es/N0 in dB at an attenuation of `a` dB.
    #[must_use]
    pub fn es_n0_at(&self, a: f64) -> f64 {
        self.es_n0 - a - self.noise_rise(a)
    }

    /// The attenuation in dB at which Es/N0 falls to `es_n0` dB; 0 if it is below that even under a clear sky.
    #[must_use]
    pub fn attenuation_at(&self, es_n0: f64) -> f64 {
        let (mut low, mut high) = (0.0, (self.es_n0 - es_n0).max(0.0));
        // Es/N0 falls by at least as many dB as the attenuation rises.
        for _ in 0..64 {
            let middle = 0.5 * (low + high);
            if self.es_n0_at(middle) > es_n0 { low = middle } else { high = middle }
        }
        high
    }

    /// The running carrier. If the configuration is invalid ([`Self::validate`]), the ModCods of DVB-S2 replace a bad list, and
    /// the adaptive choice an unknown ModCod.
    pub(super) fn build(&self) -> Carrier {
        let table = self.table().unwrap_or_else(|_| Table::dvb_s2());
        let fixed = if self.modcod == ADAPTIVE { None } else { table.position(&self.modcod) };
        Carrier { config: self.clone(), table, fixed }
    }

    /// Whether the ModCod is fixed.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.modcod != ADAPTIVE
    }

    /// The ModCod under a clear sky.
    #[must_use]
    pub fn clear_sky(&self) -> ModCod {
        let carrier = self.build();
        carrier.table.all()[carrier.choose(0.0, None)].clone()
    }

    /// The ModCods used as Es/N0 decreases, most efficient first, each with the attenuation in dB above which it is no
    /// longer chosen. For the last one it is the attenuation at its threshold: with more, packets begin to be lost.
    #[must_use]
    pub fn ladder(&self) -> Vec<(ModCod, f64)> {
        let carrier = self.build();
        let mut steps: Vec<(ModCod, f64)> = Vec::new();
        let mut at = Some(carrier.choose(0.0, None));
        while let Some(i) = at {
            let m = &carrier.table.all()[i];
            let next = carrier.table.all()[..i].iter().rposition(|other| other.es_n0 < m.es_n0);
            let last = carrier.fixed.is_some() || next.is_none();
            let margin = if last { 0.0 } else { self.margin };
            steps.push((m.clone(), self.attenuation_at(m.es_n0 + margin)));
            at = if last { None } else { next };
        }
        steps
    }
}

/// A running carrier.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    config: Config,
    table: Table,
    /// The fixed ModCod, if any.
    fixed: Option<usize>,
}

impl Carrier {
    /// The index of the ModCod to use at an attenuation of `a` dB, after the one at `before`.
    ///
    /// If Es/N0 is below all thresholds plus the margin, it is the most robust ModCod.
    pub(super) fn choose(&self, a: f64, before: Option<usize>) -> usize {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let room = self.config.es_n0_at(a) - self.config.margin;
        let best = self.table.best(room).unwrap_or_else(|| self.table.most_robust());
        match before {
            // A step up needs more signal.
            Some(before) if best > before && self.config.hysteresis > 0.0 => {
                let up = self.table.best(room - self.config.hysteresis).unwrap_or(before);
                up.max(before)
            }
            _ => best,
        }
    }

    /// Loss of a packet of 188 bytes at an attenuation of `a` dB with the ModCod at index `i`.
    pub(super) fn loss(&self, a: f64, i: usize) -> f64 {
        modcod::loss(self.config.es_n0_at(a) - self.table.all()[i].es_n0)
    }

    /// The rate with the ModCod at index `i`; `None` if the symbol rate is unknown.
    pub(super) fn rate(&self, i: usize) -> Option<Rate> {
        let bits = self.config.symbol_rate? * self.table.all()[i].efficiency;
        Some(Rate::from_bits_per_sec((math::floor(bits + 0.5) as u64).max(1)))
    }

    /// Es/N0 in dB at an attenuation of `a` dB.
    pub(super) fn es_n0(&self, a: f64) -> f64 {
        self.config.es_n0_at(a)
    }

    /// Bits per symbol of the ModCod at index `i`.
    pub(super) fn efficiency(&self, i: usize) -> f64 {
        self.table.all()[i].efficiency
    }

    /// Delay until a choice takes effect; zero if the configuration leaves it open.
    pub(super) fn reaction(&self) -> Duration {
        self.config.reaction.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn noise_rises_by_what_the_rain_radiates() {
        let c = Config::default();
        assert_eq!(c.noise_rise(0.0), 0.0);
        // At 3 dB rain lets 0.50119 of the power through: 150 K become 150 + 275·0.49881 = 287.17 K.
        assert!((c.noise_rise(3.0) - 10.0 * (287.173_f64 / 150.0).log10()).abs() < 1e-4);
        // The most it can become: 10·log10(425/150) = 4.523 dB.
        assert!((c.noise_rise(1e3) - 4.523).abs() < 5e-4);
        assert_eq!(Config { noise_rise: false, ..c }.noise_rise(9.0), 0.0);
    }

    #[test]
    fn the_attenuation_of_a_signal_is_the_inverse_of_the_signal_at_an_attenuation() {
        for noise_rise in [false, true] {
            let c = Config { es_n0: 14.0, noise_rise, ..Config::default() };
            for a in [0.0, 0.1, 2.0, 7.5, 13.0] {
                assert!((c.attenuation_at(c.es_n0_at(a)) - a).abs() < 1e-9, "{a}");
            }
            assert_eq!(c.attenuation_at(20.0), 0.0);
        }
    }

    #[test]
    fn the_choice_keeps_a_margin_while_there_is_one_to_keep() {
        let c = Config { es_n0: 9.0, noise_rise: false, ..Config::default() };
        let carrier = c.build();
        let chosen = |a| carrier.table.all()[carrier.choose(a, None)].name.clone();
        // 8PSK 3/4 needs 7.91 dB and 1 dB more; 8PSK 2/3 needs 6.62 dB.
        assert_eq!(
            (chosen(0.0), chosen(0.08), chosen(0.1)),
            ("8PSK 3/4".into(), "8PSK 3/4".into(), "8PSK 2/3".into())
        );
        // -2 dB are left, less than the -1.35 dB that QPSK 1/4 needs with margin: it is used to the end.
        assert_eq!(chosen(11.0), "QPSK 1/4");
        assert_eq!(carrier.loss(11.0, 0), 1e-7);
        // 0.3 dB below the lowest threshold nothing arrives.
        assert_eq!(carrier.loss(9.0 + 2.35 + 0.3 + 1e-9, 0), 1.0);
    }

    #[test]
    fn hysteresis_holds_back_steps_up_alone() {
        let c = Config { es_n0: 12.0, noise_rise: false, hysteresis: 0.5, ..Config::default() };
        let carrier = c.build();
        let at = |name| carrier.table.position(name).unwrap();
        // 3.8 dB left: QPSK 1/2 needs 2.0 dB, QPSK 3/5 3.23 dB, QPSK 2/3 4.1 dB, each with margin.
        assert_eq!(carrier.choose(8.2, None), at("QPSK 3/5"));
        assert_eq!(carrier.choose(8.2, Some(at("8PSK 2/3"))), at("QPSK 3/5"));
        assert_eq!(carrier.choose(8.2, Some(at("QPSK 1/2"))), at("QPSK 3/5"));
        // 3.5 dB: above 3.23 dB by less than the hysteresis.
        assert_eq!(carrier.choose(8.5, Some(at("QPSK 1/2"))), at("QPSK 1/2"));
        assert_eq!(carrier.choose(8.5, Some(at("QPSK 1/4"))), at("QPSK 1/2"));
        assert_eq!(carrier.choose(8.5, Some(at("QPSK 3/5"))), at("QPSK 3/5"));
    }

    #[test]
    fn the_ladder_goes_down_to_the_first_loss() {
        let c = Config { es_n0: 4.0, noise_rise: false, ..Config::default() };
        let ladder: Vec<_> =
            c.ladder().into_iter().map(|(m, a)| (m.name.to_string(), (a * 100.0).round())).collect();
        // 4 dB less threshold and margin: QPSK 3/5 0.77, 1/2 2.0, 2/5 3.3, 1/3 4.24; QPSK 1/4 without margin 6.35.
        let expected = [
            ("QPSK 3/5", 77.0),
            ("QPSK 1/2", 200.0),
            ("QPSK 2/5", 330.0),
            ("QPSK 1/3", 424.0),
            ("QPSK 1/4", 635.0),
        ];
        assert_eq!(ladder, expected.map(|(name, a)| (name.to_string(), a)));
        let fixed = Config { modcod: "QPSK 1/2".into(), ..c };
        let ladder = fixed.ladder();
        assert_eq!((ladder.len(), (ladder[0].1 * 100.0).round()), (1, 300.0));
    }

    #[test]
    fn carriers_without_sense_are_refused() {
        let key = |c: Config| c.validate().unwrap_err().key;
        let good = Config::default();
        assert!(good.validate().is_ok());
        assert_eq!(key(Config { es_n0: f64::NAN, ..good.clone() }), "carrier.es-n0");
        assert_eq!(key(Config { margin: -1.0, ..good.clone() }), "carrier.margin");
        assert_eq!(key(Config { symbol_rate: Some(0.0), ..good.clone() }), "carrier.symbol-rate");
        assert_eq!(key(Config { system_temperature: 0.0, ..good.clone() }), "carrier.system-temperature");
        assert_eq!(key(Config { modcods: Some(Vec::new()), ..good.clone() }), "carrier.modcods");
        let slow = Config { reaction: Some(Duration::from_secs(61)), ..good.clone() };
        let e = slow.validate().unwrap_err();
        assert_eq!((e.key, e.message.as_str()), ("carrier.reaction", "61 s: write at most 60 s"));
        let e = Config { modcod: "QPSK 7/8".into(), ..good }.validate().unwrap_err();
        assert_eq!(e.key, "carrier.modcod");
        assert!(e.message.contains("\"QPSK 7/8\" is not a ModCod: write \"adaptive\" or one of QPSK 1/4"));
    }
}
