//! Which controls run in QUIC, and with which rules.

use skyhaul_cc::{Config, HalvingBase, InitialWindow, Rules, SharedRules};

/// Why a control cannot run in QUIC.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedControl {
    /// The options of the control contradict each other.
    #[error("{0}")]
    Invalid(String),
    /// The control is user-defined, and this crate cannot build it.
    #[error("the control {0:?} is user-defined: only built-in controls run in QUIC")]
    UserDefined(String),
    /// The control sends data at low priority.
    #[error("the control {0:?} sends data at low priority, which QUIC cannot do")]
    LowPriority(&'static str),
    /// The control depends on reports of the receiver.
    #[error("the control {0:?} needs the rate that the receiver reports, which QUIC does not")]
    ReceiverRate(&'static str),
}

/// Builds a controller for each path of a connection.
#[derive(Clone, Debug)]
pub struct Factory {
    config: Config,
    rules: SharedRules,
    seed: u64,
}

impl Factory {
    /// Controllers that run `config`, with the window arithmetic of RFC 9002 and random streams of seed 1.
    ///
    /// A control that probes the network runs without probes, as with a peer that does not answer them.
    ///
    /// # Errors
    /// If the control cannot run in QUIC.
    pub fn new(config: Config) -> Result<Self, UnsupportedControl> {
        config.validate().map_err(|e| UnsupportedControl::Invalid(e.to_string()))?;
        let rules = SharedRules::from(&RULES);
        let Some(policy) = config.policy(&rules) else {
            return Err(UnsupportedControl::UserDefined(config.label().into_owned()));
        };
        // A control with probes gives up low priority together with them.
        if policy.low_priority_data && !policy.probes {
            return Err(UnsupportedControl::LowPriority(config.name()));
        }
        if policy.receiver_rate {
            return Err(UnsupportedControl::ReceiverRate(config.name()));
        }
        Ok(Self { config, rules, seed: 1 })
    }

    /// The same with another seed for the controls that draw random numbers.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Whether the control sends probes in TCP, which it cannot in QUIC.
    #[must_use]
    pub fn misses_probes(&self) -> bool {
        self.config.policy(&self.rules).is_some_and(|policy| policy.probes)
    }

    pub(crate) fn control(&self) -> skyhaul_cc::Algorithm {
        self.config.build(&self.rules)
    }
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }
}

/// RFC 9002: an initial window of ten packets (§7.2), slow start by all that an acknowledgement covers (§7.3.1), halving of
/// the congestion window (§7.3.2), no duplicate acknowledgements that a window could be inflated by.
const RULES: Rules = Rules {
    initial_window: InitialWindow::Rfc6928,
    abc_limit: f64::INFINITY,
    halving_base: HalvingBase::Window,
    inflate_ndup: 0.0,
    partial_deflation: false,
    ..Rules::MODERN
};
