//! Modulation and code rate: bits per symbol, and the required signal.
//!
//! \[S2\] ETSI EN 302 307-1, "DVB-S2", table 13: with normal frames and without pilots, efficiency in bits per symbol
//! and the ideal Es/N0 at which one of 10⁷ packets of 188 bytes is lost.

use super::Invalid;
use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Decibels;
use skyhaul_base::math;

/// A combination of modulation and code rate.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ModCodSpec"))]
pub struct ModCod {
    /// Name of the ModCod, such as "QPSK 1/2".
    #[cfg_attr(feature = "schema", schemars(with = "alloc::string::String"))]
    pub name: Cow<'static, str>,
    /// Bits per symbol.
    pub efficiency: f64,
    /// Es/N0 at which one of 10⁷ packets of 188 bytes is lost.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::decibels"))]
    #[cfg_attr(feature = "schema", schemars(with = "Decibels"))]
    pub es_n0: f64,
}

/// Loss of a packet of 188 bytes at and above the threshold [S2].
pub(super) const QUASI_ERROR_FREE: f64 = 1e-7;

/// Range in dB below its threshold over which a code of DVB-S2 goes from almost no loss to total loss (*our
/// choice*: the width of the waterfall of a long LDPC code).
pub(super) const WATERFALL: f64 = 0.3;

/// Loss of a packet of 188 bytes at `margin` dB above the threshold: log-linear through the waterfall.
pub(super) fn loss(margin: f64) -> f64 {
    if margin >= 0.0 {
        QUASI_ERROR_FREE
    } else if margin <= -WATERFALL {
        1.0
    } else {
        math::pow(10.0, -7.0 * (1.0 + margin / WATERFALL))
    }
}

const fn s2(name: &'static str, efficiency: f64, es_n0: f64) -> ModCod {
    ModCod { name: Cow::Borrowed(name), efficiency, es_n0 }
}

/// All ModCods of [S2] for normal frames.
const DVB_S2: [ModCod; 28] = [
    s2("QPSK 1/4", 0.490_243, -2.35),
    s2("QPSK 1/3", 0.656_448, -1.24),
    s2("QPSK 2/5", 0.789_412, -0.30),
    s2("QPSK 1/2", 0.988_858, 1.00),
    s2("QPSK 3/5", 1.188_304, 2.23),
    s2("QPSK 2/3", 1.322_253, 3.10),
    s2("QPSK 3/4", 1.487_473, 4.03),
    s2("QPSK 4/5", 1.587_196, 4.68),
    s2("QPSK 5/6", 1.654_663, 5.18),
    s2("QPSK 8/9", 1.766_451, 6.20),
    s2("8PSK 3/5", 1.779_991, 5.50),
    s2("QPSK 9/10", 1.788_612, 6.42),
    s2("8PSK 2/3", 1.980_636, 6.62),
    s2("8PSK 3/4", 2.228_124, 7.91),
    s2("8PSK 5/6", 2.478_562, 9.35),
    s2("16APSK 2/3", 2.637_201, 8.97),
    s2("8PSK 8/9", 2.646_012, 10.69),
    s2("8PSK 9/10", 2.679_207, 10.98),
    s2("16APSK 3/4", 2.966_728, 10.21),
    s2("16APSK 4/5", 3.165_623, 11.03),
    s2("16APSK 5/6", 3.300_184, 11.61),
    s2("16APSK 8/9", 3.523_143, 12.89),
    s2("16APSK 9/10", 3.567_342, 13.13),
    s2("32APSK 3/4", 3.703_295, 12.73),
    s2("32APSK 4/5", 3.951_571, 13.64),
    s2("32APSK 5/6", 4.119_540, 14.28),
    s2("32APSK 8/9", 4.397_854, 15.69),
    s2("32APSK 9/10", 4.453_027, 16.05),
];

/// Available ModCods. Efficiencies ascend; thresholds need not, and one that another beats in both is never chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Table(Vec<ModCod>);

impl Table {
    /// A user-defined table.
    ///
    /// # Errors
    /// If it is empty, efficiencies do not ascend, a number is invalid, or two have the same name. A ModCod that
    /// needs no less signal than a more efficient one is accepted: it can be the fixed ModCod of a carrier.
    pub fn new(list: &[ModCod]) -> Result<Self, Invalid> {
        let refuse = |message| Err(Invalid { key: "modcods", message });
        if list.is_empty() {
            return refuse("empty: write at least one, or leave the key out for the DVB-S2 ModCods".into());
        }
        for (i, m) in list.iter().enumerate() {
            let name = &m.name;
            if !(m.efficiency > 0.0 && m.efficiency <= 64.0) {
                let e = m.efficiency;
                return refuse(format!(
                    "{name:?} carries {e} bits per symbol: write a number above 0, up to 64"
                ));
            }
            if m.es_n0.is_nan() || m.es_n0.abs() > 100.0 {
                return refuse(format!("{name:?} needs {} dB: write from -100 dB to 100 dB", m.es_n0));
            }
            let Some(before) = i.checked_sub(1).and_then(|j| list.get(j)) else { continue };
            if m.efficiency <= before.efficiency {
                return refuse(format!(
                    "{name:?} carries no more bits per symbol than {:?} before it: sort them by ascending efficiency",
                    before.name
                ));
            }
            if list[..i].iter().any(|other| other.name == m.name) {
                return refuse(format!("{name:?} appears twice: leave one out"));
            }
        }
        Ok(Self(list.to_vec()))
    }

    /// The ModCods of DVB-S2 with normal frames.
    #[must_use]
    pub fn dvb_s2() -> Self {
        Self(DVB_S2.to_vec())
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[ModCod] {
        &self.0
    }

    /// The index of the one called `name`.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|m| m.name == name)
    }

    /// The index of the most efficient one for which `es_n0` dB suffice; `None` below all thresholds.
    #[must_use]
    pub fn best(&self, es_n0: f64) -> Option<usize> {
        self.0.iter().rposition(|m| m.es_n0 <= es_n0)
    }

    /// The index of the one that needs the least signal; of several, the most efficient.
    #[must_use]
    pub fn most_robust(&self) -> usize {
        let mut best = 0;
        for (i, m) in self.0.iter().enumerate() {
            if m.es_n0 <= self.0[best].es_n0 {
                best = i;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn own(name: &'static str, efficiency: f64, es_n0: f64) -> ModCod {
        s2(name, efficiency, es_n0)
    }

    #[test]
    fn efficiencies_follow_from_the_frames_of_the_standard() {
        // [S2] table 5a: a frame carries the data bits of the BCH code, less the 80 bits of the baseband header, in 64800
        // bits after the LDPC code. The header of the physical layer adds 90 symbols.
        let carried = [
            ("1/4", 16_008),
            ("1/3", 21_408),
            ("2/5", 25_728),
            ("1/2", 32_208),
            ("3/5", 38_688),
            ("2/3", 43_040),
            ("3/4", 48_408),
            ("4/5", 51_648),
            ("5/6", 53_840),
            ("8/9", 57_472),
            ("9/10", 58_192),
        ];
        for m in Table::dvb_s2().all() {
            let (modulation, code) = m.name.split_once(' ').unwrap();
            let bits = [("QPSK", 2), ("8PSK", 3), ("16APSK", 4), ("32APSK", 5)];
            let bits = bits.iter().find(|b| b.0 == modulation).unwrap().1;
            let block = carried.iter().find(|c| c.0 == code).unwrap().1;
            let efficiency = f64::from(block - 80) / f64::from(64_800 / bits + 90);
            assert!((m.efficiency - efficiency).abs() < 1e-6, "{}: {efficiency}", m.name);
        }
    }

    #[test]
    fn the_most_efficient_that_fits_is_chosen_and_what_is_dominated_never_is() {
        let table = Table::dvb_s2();
        let best = |db| table.best(db).map(|i| table.all()[i].name.as_ref());
        assert_eq!(best(-2.36), None);
        assert_eq!(best(-2.35), Some("QPSK 1/4"));
        assert_eq!(best(0.99), Some("QPSK 2/5"));
        assert_eq!(best(8.96), Some("8PSK 3/4"));
        // 8PSK 5/6 needs 9.35 dB, and 16APSK 2/3 carries more at 8.97 dB.
        assert_eq!(best(9.36), Some("16APSK 2/3"));
        assert_eq!(best(99.0), Some("32APSK 9/10"));
        let chosen: Vec<_> = (-300..2000).filter_map(|c| best(f64::from(c) / 100.0)).collect();
        for m in table.all() {
            let dominated = ["QPSK 8/9", "8PSK 5/6", "8PSK 8/9", "8PSK 9/10", "16APSK 8/9", "16APSK 9/10"];
            assert_eq!(
                chosen.contains(&m.name.as_ref()),
                !dominated.contains(&m.name.as_ref()),
                "{}",
                m.name
            );
        }
        assert_eq!(table.most_robust(), 0);
    }

    #[test]
    fn rates_of_five_million_symbols_per_second() {
        let table = Table::dvb_s2();
        for (name, mbit) in [("QPSK 1/2", 4.944), ("8PSK 3/4", 11.141), ("16APSK 5/6", 16.501)] {
            let rate = 5.0 * table.all()[table.position(name).unwrap()].efficiency;
            assert!((rate - mbit).abs() < 0.0005, "{name}: {rate}");
        }
    }

    #[test]
    fn the_cliff_is_log_linear_over_a_third_of_a_decibel() {
        assert_eq!((loss(5.0), loss(0.0)), (1e-7, 1e-7));
        assert_eq!((loss(-0.3), loss(-9.0)), (1.0, 1.0));
        // Half-way on a logarithmic scale: 10^-3.5. A seventh of the way is a factor of ten.
        assert!((loss(-0.15) / 10f64.powf(-3.5) - 1.0).abs() < 1e-12);
        assert!((loss(-0.3 / 7.0) / 1e-6 - 1.0).abs() < 1e-12);
        assert!((loss(-1e-12) / 1e-7 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn tables_without_sense_are_refused() {
        let message = |list: &[ModCod]| Table::new(list).unwrap_err().to_string();
        assert!(message(&[]).starts_with("empty"));
        assert!(message(&[own("a", 1.0, 0.0), own("b", 1.0, 3.0)]).contains("\"b\" carries no more"));
        assert!(message(&[own("a", 1.0, 0.0), own("a", 2.0, 3.0)]).contains("appears twice"));
        assert!(message(&[own("a", 0.0, 0.0)]).contains("0 bits per symbol"));
        assert!(message(&[own("a", 1.0, f64::NAN)]).contains("NaN dB"));
        // One that is dominated is skipped.
        let table = Table::new(&[own("a", 1.0, 0.0), own("b", 2.0, 5.0), own("c", 3.0, 4.0)]).unwrap();
        assert_eq!([-1.0, 0.0, 4.5, 9.0].map(|db| table.best(db)), [None, Some(0), Some(2), Some(2)]);
        let list = vec![own("a", 1.0, 1.0), own("b", 2.0, -5.0)];
        assert_eq!(Table::new(&list).unwrap().most_robust(), 1);
        let equal = vec![own("a", 1.0, 0.0), own("b", 2.0, 0.0), own("c", 3.0, 4.0)];
        assert_eq!(Table::new(&equal).unwrap().most_robust(), 1);
    }
}
