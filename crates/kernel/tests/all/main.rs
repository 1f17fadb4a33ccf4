//! The controls for the kernel: the same windows as those of this project, the same programs as their sources.
#![cfg(target_os = "linux")]

mod objects;
mod replay;
