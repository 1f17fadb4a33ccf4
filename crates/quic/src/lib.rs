//! Skyhaul's congestion controls as controllers of [quinn](https://docs.rs/quinn), an implementation of QUIC.
//!
//! ```
//! use std::sync::Arc;
//!
//! let control = skyhaul_cc::Config::by_name("cubic").expect("it is built in");
//! let factory = skyhaul_quic::Factory::new(control)?;
//! // let mut transport = quinn::TransportConfig::default();
//! // transport.congestion_controller_factory(Arc::new(factory));
//! # let _ = Arc::new(factory);
//! # Ok::<(), skyhaul_quic::UnsupportedControl>(())
//! ```
//!
//! A controller of quinn sets a congestion window and learns of acknowledgements and losses; loss detection and pacing
//! are quinn's (RFC 9002). `docs/quic.md` lists the requests of a control that this interface cannot express.
//!
//! ```text
//! factory     which controls run, and with which rules
//! flight      what is in flight: delivery-rate samples, RTT, rounds
//! controller  events of quinn as those of a congestion control
//! ```

mod controller;
mod factory;
mod flight;

pub use controller::Adapter;
pub use factory::{Factory, UnsupportedControl};
