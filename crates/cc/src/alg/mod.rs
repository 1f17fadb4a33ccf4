//! The algorithms, one module each.

pub mod bbr;
pub mod bbr3;
pub mod cubic;
pub mod fast_start;
pub mod gaimd;
pub mod hark;
pub mod hybla;
pub mod peach;
pub mod peach_plus;
pub mod prague;
pub mod reno;
pub mod scps_like;
pub mod tcp_probing;
pub mod tcp_real;
pub mod tibet;
pub mod vegas;
pub mod westwood;
pub mod westwood_abse;
pub mod westwood_plus;
