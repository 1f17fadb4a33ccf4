//! The controls for the kernel have the windows of those of this project, and the compiled programs are those of the sources.
#![cfg(target_os = "linux")]

mod objects;
mod replay;
