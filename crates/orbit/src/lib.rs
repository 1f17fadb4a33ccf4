//! Moving satellites, and their effect on a link.
//!
//! ```text
//! Config ── Sky::new ──▶ Sky ── Tracker::new ──▶ Tracker ── step ──▶ Step, Step, …
//! (stations, constellations, (positions,          (who serves,      (from when to when, over which
//!  policy, plain values)      who sees whom)       when it changes)  satellites, with which delay)
//! ```
//! A [`Flight`] turns these steps into changes of a link.
//!
//! Orbits are circular around a sphere, or follow SGP4 for published elements. Delays are `range / c`. A path is a
//! *bent pipe* (one satellite visible from both stations) or a route over inter-satellite links. Times are those of
//! the run: the first instant is its start.
//!
//! Everything is computed step by step as time goes on, without a horizon, and only with [`skyhaul_base::math`], so
//! that simulator and emulator get the same satellite positions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cities;
mod config;
pub mod constellation;
mod course;
pub mod earth;
mod epoch;
mod gauge;
pub mod geometry;
pub mod handover;
mod invalid;
mod moment;
mod passes;
mod route;
mod sky;
mod station;
mod time_system;
mod tracker;
mod vector;

pub use config::{Config, Diversity, Relay, Shells, Switch};
pub use constellation::Constellation;
pub use course::{Flight, first_path};
pub use epoch::Epoch;
pub use gauge::{Gauge, Reading};
pub use invalid::Invalid;
pub use moment::Moment;
pub use passes::{Pass, passes};
pub use route::Route;
pub use sky::{Sky, Stations};
pub use station::Station;
pub use tracker::{Path, Step, Tracker};
pub use vector::Vector;
