//! The simulator from outside. One program for all of it: each further one compiles and links the whole crate once more.

mod autotuning;
mod chain;
mod closed_forms;
mod common;
mod cuts;
mod diversity;
mod engine;
mod fades;
mod fast_start;
mod golden;
mod loss_classifier;
mod marks;
mod measures;
mod newreno_timer;
mod path_mtu;
mod peach_vegas;
mod rates;
mod return_link;
mod scps;
mod send_buffer;
mod square_root;
mod tcp_real;
mod traces;
mod user;
mod video;
mod workloads;
