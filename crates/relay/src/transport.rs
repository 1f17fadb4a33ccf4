//! Transport of a leg between two gateways.

use crate::xtp;

/// Transport of a leg. Short form: "tcp".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(rename = "LegTransportSpec")]
pub enum Transport {
    /// A connection with congestion control.
    #[default]
    #[serde(deserialize_with = "skyhaul_base::amount::no_other_keys")]
    Tcp,
    /// Rate and burst control, with the mechanisms of XTP 4.0; between two gateways only.
    XtpLike(xtp::Config),
}

impl Transport {
    /// The name in files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::XtpLike(_) => "xtp-like",
        }
    }
}
