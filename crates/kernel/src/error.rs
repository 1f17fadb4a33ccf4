//! Why a control is not loaded or removed.

/// Each displays as one line with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each displays as a sentence that says what is wrong and what to do")]
pub enum KernelError {
    #[error("{name:?} is no control for the kernel: write one of {known}")]
    Unknown { name: String, known: String },
    #[error("{name} cannot run in the kernel, which gives a congestion control no means to send {what}")]
    Inexpressible { name: String, what: &'static str },
    #[error("the kernel has {name} of its own: choose it by the name {kernel}")]
    ItsOwn { name: String, kernel: &'static str },
    #[error("{kernel} is installed already: skyhaul kernel remove {name}, then install it again")]
    Installed { name: &'static str, kernel: &'static str },
    #[error("{kernel} is not installed: skyhaul kernel list shows what is")]
    NotInstalled { kernel: &'static str },
    #[error(
        "{kernel} is the default of this network namespace: first choose another, as by sysctl -w net.ipv4.tcp_congestion_control={other}"
    )]
    Default { kernel: &'static str, other: String },
    #[error(
        "the kernel has no types for BPF (/sys/kernel/btf/vmlinux): use one built with CONFIG_DEBUG_INFO_BTF, as those of Debian 12 and Ubuntu 24.04"
    )]
    NoBtf,
    #[error(
        "not allowed to load BPF programs: run as root outside of user namespaces and containers (CAP_BPF and CAP_NET_ADMIN)"
    )]
    NotAllowed,
    #[error(
        "bpftool is not installed: install it (Debian: apt install bpftool; Ubuntu: linux-tools-common; Fedora: bpftool)"
    )]
    NoBpftool,
    #[error("cannot {what}: {why}")]
    File { what: String, why: String },
    #[error("the kernel refuses {kernel}: {line}")]
    Refused { kernel: &'static str, line: String },
}
