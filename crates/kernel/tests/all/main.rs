//! The controls for the kernel: the same windows as those of this project, the same programs as their sources, and the running
//! kernel.
#![cfg(target_os = "linux")]

mod live;
mod objects;
mod replay;
