//! The window arithmetic common to the TCP stacks of an era: part of an endpoint preset, passed to every algorithm.

use alloc::sync::Arc;
use core::ops::Deref;

/// Initial congestion window.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum InitialWindow {
    /// A number of segments.
    Segments(f64),
    /// `min(4·MSS, max(2·MSS, 4380 B))` (RFC 2414, RFC 3390).
    Rfc3390,
    /// `min(10·MSS, max(2·MSS, 14600 B))` (RFC 6928).
    Rfc6928,
}

/// Maximum of an option that is a number of segments: more than any path holds, and few enough that a window stays finite
/// and the sum of two is exact to 1e-6 segments.
pub const MOST_SEGMENTS: f64 = 1e9;

/// An initial window of less than one segment or of more than [`MOST_SEGMENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("initial-window must be from 1 to 1e9 segments")]
pub struct InvalidInitialWindow;

impl InitialWindow {
    /// Refuses invalid windows.
    ///
    /// # Errors
    /// If the number of segments is below 1, above [`MOST_SEGMENTS`] or not a number.
    pub fn validate(self) -> Result<(), InvalidInitialWindow> {
        match self {
            Self::Segments(n) if !(1.0..=MOST_SEGMENTS).contains(&n) => Err(InvalidInitialWindow),
            _ => Ok(()),
        }
    }

    /// The window in segments of `smss` bytes.
    #[must_use]
    pub fn segments(self, smss: u32) -> f64 {
        // The RFCs state bytes; a window that ends within a segment admits only whole segments.
        let bytes = |most: u32, floor: u32| f64::from((most * smss).min((2 * smss).max(floor)) / smss);
        match self {
            Self::Segments(n) => n,
            Self::Rfc3390 => bytes(4, 4380),
            Self::Rfc6928 => bytes(10, 14_600),
        }
    }
}

/// Initial slow start threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum InitialSsthresh {
    /// No limit (RFC 5681: "arbitrarily high").
    Infinite,
    /// The receiver's window (ns-2: `window_`).
    Rwnd,
    /// A number of segments.
    Segments(f64),
}

/// What a reduction halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HalvingBase {
    /// `min(cwnd, rwnd)` (ns-2).
    Window,
    /// FlightSize (RFC 5681).
    FlightSize,
}

/// How the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CaGrowth {
    /// One segment per acknowledgement in slow start, `1/cwnd` in congestion avoidance (ns-2, the papers).
    PerAck,
    /// Appropriate byte counting (RFC 3465): by acknowledged data. In slow start at most `abc-limit`
    /// segments per acknowledgement, one in the slow start that follows a timeout; in congestion avoidance one segment per
    /// window acknowledged. Also written `byte-counting`.
    #[cfg_attr(feature = "serde", serde(alias = "byte-counting"))]
    Abc,
}

/// Window arithmetic of an endpoint preset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Initial congestion window.
    pub initial_window: InitialWindow,
    /// Initial slow start threshold.
    pub initial_ssthresh: InitialSsthresh,
    /// What a reduction halves.
    pub halving_base: HalvingBase,
    /// The halved window is rounded down to whole segments (ns-2.1b8a).
    pub integer_halving: bool,
    /// Segments added to the window at the start of Reno or NewReno fast recovery, for those that have left the
    /// network: 3 in RFC 5681, 0 in the traces of \[Peach\] (Figs. 7, 9).
    pub inflate_ndup: f64,
    /// NewReno deflates the window by the data that a partial acknowledgement covers (RFC 6582); ns-2.1b8a did not.
    pub partial_deflation: bool,
    /// cwnd never grows beyond the receiver's window.
    pub cap_at_rwnd: bool,
    /// How the window grows.
    pub growth: CaGrowth,
    /// L of RFC 3465 §2.3, in segments: the maximum that one acknowledgement adds in slow start with [`CaGrowth::Abc`].
    /// The RFC allows 1, which is never faster than counting acknowledgements, and 2, which makes up for delayed
    /// acknowledgements.
    pub abc_limit: f64,
    /// After an idle period the window falls back to the initial window (RFC 5681 §4.1).
    pub restart_after_idle: bool,
}

impl Rules {
    /// ns-2.1b8a of June 2001 as the papers used it, with the initial window of one segment of \[Peach\].
    pub const NS2_2001: Self = Self {
        initial_window: InitialWindow::Segments(1.0),
        initial_ssthresh: InitialSsthresh::Rwnd,
        halving_base: HalvingBase::Window,
        integer_halving: true,
        inflate_ndup: 3.0,
        partial_deflation: false,
        cap_at_rwnd: false,
        growth: CaGrowth::PerAck,
        abc_limit: 2.0,
        restart_after_idle: true,
    };
    /// ns-2 since 2004 (ns-2.35).
    pub const NS2_2004: Self = Self {
        initial_window: InitialWindow::Segments(2.0),
        integer_halving: false,
        partial_deflation: true,
        ..Self::NS2_2001
    };
    /// The standards: RFC 5681, 6582, 3390, 3465.
    pub const RFC: Self = Self {
        initial_window: InitialWindow::Rfc3390,
        initial_ssthresh: InitialSsthresh::Infinite,
        halving_base: HalvingBase::FlightSize,
        integer_halving: false,
        inflate_ndup: 3.0,
        partial_deflation: true,
        cap_at_rwnd: false,
        growth: CaGrowth::Abc,
        abc_limit: 2.0,
        restart_after_idle: true,
    };
    /// Close to current operating systems: RFC 6928, and byte counting with L = 2 as in FreeBSD. Linux has no such limit.
    pub const MODERN: Self = Self { initial_window: InitialWindow::Rfc6928, ..Self::RFC };
}

/// [`Rules`] shared by the connections of one endpoint configuration: an algorithm keeps a reference, not a copy.
///
/// Functions that take `impl Into<SharedRules>` also accept `&Rules`, of which they make a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedRules(Arc<Rules>);

impl SharedRules {
    /// These rules with the changes of an algorithm's options; still shared if there are none.
    #[must_use]
    pub fn adapted(&self, own: Rules) -> Self {
        if own == **self { self.clone() } else { Self::from(&own) }
    }
}

impl Deref for SharedRules {
    type Target = Rules;
    #[inline]
    fn deref(&self) -> &Rules {
        &self.0
    }
}

impl From<&Rules> for SharedRules {
    fn from(rules: &Rules) -> Self {
        Self(Arc::new(*rules))
    }
}

impl From<&Self> for SharedRules {
    fn from(rules: &Self) -> Self {
        rules.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_windows_of_the_rfcs() {
        // RFC 3390: 1000-byte segments give 4 segments, 1460-byte segments 3.
        assert_eq!(InitialWindow::Rfc3390.segments(1000), 4.0);
        assert_eq!(InitialWindow::Rfc3390.segments(1460), 3.0);
        assert_eq!(InitialWindow::Rfc6928.segments(1460), 10.0);
        assert_eq!(InitialWindow::Segments(1.0).segments(1000), 1.0);
    }

    #[test]
    fn rules_are_shared_until_an_option_changes_them() {
        let preset = SharedRules::from(&Rules::RFC);
        let same = |a: &SharedRules, b: &SharedRules| core::ptr::eq::<Rules>(&**a, &**b);
        assert!(same(&preset, &SharedRules::from(&preset)));
        assert!(same(&preset, &preset.adapted(Rules::RFC)));
        assert!(!same(&preset, &preset.adapted(Rules::MODERN)));
        assert_eq!(*preset.adapted(Rules::MODERN), Rules::MODERN);
    }
}
