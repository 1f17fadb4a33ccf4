//! Loss classification: how a sender distinguishes congestion from channel errors.

use super::short::ShortForm;
use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use skyhaul_tcp::config::LossClassifier;

/// A loss classifier. Short form: its kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum LossClassifierSpec {
    /// Every loss indicates congestion.
    #[serde(deserialize_with = "skyhaul_base::amount::no_other_keys")]
    None,
    /// The true cause, with these error probabilities. Only a simulator knows it.
    Oracle {
        /// Probability that a channel error is classified as congestion.
        #[serde(default)]
        false_congestion: f64,
        /// Probability that a congestion loss is classified as a channel error.
        #[serde(default)]
        false_error: f64,
    },
    /// A channel error if the next packet arrives on time (Biaz, Vaidya 1999).
    InterArrival {
        /// Lower end of the interval that counts as on time, beyond the missing packets, in units of the minimum
        /// inter-arrival time.
        #[serde(default = "low")]
        low: f64,
        /// Upper end of that interval: 1.25, or 2 in the first version.
        #[serde(default = "high")]
        high: f64,
    },
    /// A channel error if the RTT is short (Tobe et al. 2000).
    Spike {
        /// A spike begins at this fraction of the RTT range.
        #[serde(default = "start")]
        start: f64,
        /// It ends at this fraction.
        #[serde(default = "end")]
        end: f64,
    },
}

const fn low() -> f64 {
    1.0
}
const fn high() -> f64 {
    1.25
}
const fn start() -> f64 {
    0.5
}
const fn end() -> f64 {
    1.0 / 3.0
}

const KINDS: [&str; 4] = ["none", "oracle", "inter-arrival", "spike"];

impl ShortForm for LossClassifierSpec {
    const EXPECTING: &'static str = "\"none\", \"oracle\", \"inter-arrival\", \"spike\", or a table such as { kind = \"oracle\", \
                                     false-error = 0.1 }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "none" => Ok(Self::None),
            "oracle" => Ok(Self::Oracle { false_congestion: 0.0, false_error: 0.0 }),
            "inter-arrival" => Ok(Self::InterArrival { low: low(), high: high() }),
            "spike" => Ok(Self::Spike { start: start(), end: end() }),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": KINDS })
    }
}

impl From<LossClassifierSpec> for LossClassifier {
    fn from(spec: LossClassifierSpec) -> Self {
        match spec {
            LossClassifierSpec::None => Self::None,
            LossClassifierSpec::Oracle { false_congestion, false_error } => {
                Self::Oracle { false_congestion, false_error }
            }
            LossClassifierSpec::InterArrival { low, high } => Self::InterArrival { low, high },
            LossClassifierSpec::Spike { start, end } => Self::Spike { start, end },
        }
    }
}

impl From<LossClassifier> for LossClassifierSpec {
    fn from(value: LossClassifier) -> Self {
        match value {
            LossClassifier::None => Self::None,
            LossClassifier::Oracle { false_congestion, false_error } => {
                Self::Oracle { false_congestion, false_error }
            }
            LossClassifier::InterArrival { low, high } => Self::InterArrival { low, high },
            LossClassifier::Spike { start, end } => Self::Spike { start, end },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_short_form_and_survives_a_round_trip() {
        for kind in KINDS {
            let short = LossClassifierSpec::from_text(kind).expect(kind);
            let value = LossClassifier::from(short);
            assert_eq!(LossClassifierSpec::from(value), short);
            assert_eq!(value == LossClassifier::None, kind == "none");
        }
        assert!(LossClassifierSpec::from_text("biaz").is_err());
    }
}
