//! Closed forms for TCP over long paths, with which simulations are compared.
//!
//! Times in seconds, rates in packets per second or bit/s as said, sizes in bytes or bits as said; `p` is the loss
//! probability of a packet, `b` the number of data packets per acknowledgement, `t0` the first retransmission timeout,
//! `wm` the maximum window in packets (infinite: no limit). Arguments outside of the domain of a formula are a
//! [`DomainError`], never NaN; only [`fairness::jain`] of no values is NaN.
//!
//! Sources: \[Peach\] Akyildiz, Morabito, Palazzo (2001); \[PapTsa\] Papadimitriou, Tsaoussidis (2007); \[Luglio\]
//! Luglio, Roseti, Gerla; \[Neglia\] Neglia et al.; \[YL\] Yang, Lam (ICNP 2000); \[Mathis\] Mathis, Semke, Mahdavi, Ott
//! (CCR 27(3), 1997); \[PFTK\] Padhye, Firoiu, Towsley, Kurose (SIGCOMM 1998); \[LM\] Lakshman, Madhow (ToN 1997);
//! RFC 3449; RFC 5348.
//!
//! ```
//! use skyhaul_analysis::throughput;
//! // Reno over GEO at a loss rate of 1e-2, one acknowledgement per packet, a window of 64 segments.
//! let x = throughput::pftk(1e-2, 0.55, 1.0, 1.0, 64.0).unwrap();
//! assert!((x - 21.117).abs() < 1e-3);
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod aimd;
pub mod domain;
pub mod fairness;
pub mod forms;
pub mod loss;
pub mod period;
pub mod predict;
pub mod start;
pub mod student;
pub mod throughput;
pub mod utilization;
pub mod window;

pub use domain::DomainError;

/// The result of a formula.
pub type Value = Result<f64, DomainError>;

/// Asserts that `got` is `want` up to a relative error of `tolerance`.
#[cfg(test)]
#[track_caller]
fn near(got: Value, want: f64, tolerance: f64) {
    let got = got.expect("inside the domain");
    assert!((got / want - 1.0).abs() <= tolerance, "{got} is not {want}");
}
