//! Link models from outside. One program for all of it: each further one compiles and links the whole crate once more.

mod ack_queues;
mod aqm_oracle;
mod common;
mod layers_oracle;
mod layers_statistics;
mod link_oracle;
mod link_statistics;
mod one_line;
mod queue_oracle;
mod two_paths;
