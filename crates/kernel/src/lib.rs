//! Congestion controls of this project in the Linux kernel: BPF programs that implement `struct tcp_congestion_ops`, so that any
//! program of the machine can choose one.
//!
//! Their sources are in `bpf`, in C and with a licence of their own (BSD-2-Clause or GPL-2.0, as the kernel asks of such programs);
//! `bpf/build.sh` compiles them. The compiled programs come with this crate, and `bpftool` loads them: it is the kernel's own
//! tool, linked with libbpf, so that neither a compiler nor libelf is needed here.

mod available;
mod control;
mod error;
mod loader;

pub use available::{default_control, is_available};
pub use control::{CONTROLS, Control, find};
pub use error::KernelError;
pub use loader::{Loaded, install, remove};
