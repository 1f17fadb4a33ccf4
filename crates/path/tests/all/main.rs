//! Tests of the link models through their public interface. They are one program, since each program links the whole crate.

mod ack_queues;
mod aqm_oracle;
mod cake_oracle;
mod common;
mod dual_pi2_oracle;
mod layers_oracle;
mod layers_statistics;
mod link_oracle;
mod link_statistics;
mod one_line;
mod queue_oracle;
mod two_paths;
