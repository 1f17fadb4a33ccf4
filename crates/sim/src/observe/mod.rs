//! What looks at a run: recorders, samples, and the true fate of packets. It never changes the run.

pub(crate) mod account;
pub(crate) mod delay;
pub(crate) mod events;
pub(crate) mod oracle;
pub(crate) mod sampler;
pub(crate) mod samples;
pub(crate) mod tap;
pub(crate) mod truth;
