//! Satellites in motion, and what their motion does to a link.
//!
//! ```text
//! Config ── Sky::new ──▶ Sky ── Tracker::new ──▶ Tracker ── step ──▶ Step, Step, …
//! (stations, constellations, (positions,          (who serves,      (from when to when, over which
//!  policy, plain values)      who sees whom)       when it changes)  satellites, with which delay)
//! ```
//! A [`Flight`] makes the changes of a link of these steps.
//!
//! Geometry is that of circular orbits around a sphere, or of SGP4 for published elements; light takes `range / c`, and a
//! path is a *bent pipe* (both stations see one satellite) or a route over inter-satellite links. Times are those of the
//! run: the first instant is its start.
//!
//! Everything is computed step by step as time goes on, without a horizon, and by [`skyhaul_base::math`] alone, so that
//! simulator and emulator see the same sky.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cities;
mod config;
pub mod constellation;
mod course;
pub mod earth;
mod epoch;
pub mod handover;
mod invalid;
pub mod look;
mod moment;
mod passes;
mod route;
mod sky;
mod station;
mod tracker;
mod vector;

pub use config::{Config, Diversity, Relay, Shells, Switch};
pub use constellation::Constellation;
pub use course::{Flight, first_path};
pub use epoch::Epoch;
pub use invalid::Invalid;
pub use moment::Moment;
pub use passes::{Pass, passes};
pub use route::Route;
pub use sky::{Seen, Sky};
pub use station::Station;
pub use tracker::{Path, Step, Tracker};
pub use vector::Vector;
