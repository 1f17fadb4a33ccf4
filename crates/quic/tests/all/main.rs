//! Controls as controllers of quinn: over a link in virtual time, and over loopback.
mod bed;
mod loopback;
mod supported;
mod transfer;
