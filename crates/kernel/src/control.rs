//! The controls that exist as BPF programs, and why others do not.

use crate::error::KernelError;

/// A control that the kernel can load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Its name in scenario files and on the command line.
    pub name: &'static str,
    /// Its name in the kernel, for `TCP_CONGESTION` and `sysctl`: at most 15 characters.
    pub kernel: &'static str,
    /// What differs from the control of this name in a scenario, in a few words; empty if nothing does.
    pub differs: &'static str,
    /// The compiled program, an ELF object.
    pub object: &'static [u8],
}

macro_rules! controls {
    ($($name:literal $kernel:literal $differs:literal;)*) => {
        &[$(Control {
            name: $name,
            kernel: $kernel,
            differs: $differs,
            object: include_bytes!(concat!("../bpf/objects/", $name, ".bpf.o")),
        }),*]
    };
}

/// All controls that the kernel can load.
pub const CONTROLS: &[Control] = controls! {
    "gaimd" "skyhaul_gaimd" "";
    "hark" "skyhaul_hark" "without probes and pages; losses are found and repaired by the kernel";
    "hybla" "skyhaul_hybla" "";
    "tcp-real" "skyhaul_real" "the sender measures the rate of a wave, not the receiver";
    "tibet" "skyhaul_tibet" "";
    "westwood-abse" "skyhaul_abse" "";
    "westwood-plus" "skyhaul_wwplus" "flavour linux";
};

/// Controls that cannot run in the kernel, and what the kernel gives a control no means to send.
const INEXPRESSIBLE: &[(&str, &str)] = &[
    ("peach", "dummy segments"),
    ("peach-plus", "segments of low priority with data that is not yet acknowledged"),
    ("tcp-probing", "probes, nor to suspend data"),
    ("fast-start", "data of low priority, nor the window of an earlier connection"),
];

/// Controls that the kernel has without this project, and their names there: recovery by SACK and PRR is not a matter of the control.
const ITS_OWN: &[(&str, &str)] = &[
    ("reno", "reno"),
    ("newreno", "reno"),
    ("sack", "reno"),
    ("prr", "reno"),
    ("cubic", "cubic"),
    ("bbr", "bbr"),
    ("vegas", "vegas"),
];

/// The control of this name, or of this name in the kernel.
///
/// # Errors
/// One line: what the control would need of the kernel, or which controls there are.
pub fn find(name: &str) -> Result<&'static Control, KernelError> {
    if let Some(found) = CONTROLS.iter().find(|c| c.name == name || c.kernel == name) {
        return Ok(found);
    }
    let name = name.to_owned();
    if let Some((_, what)) = INEXPRESSIBLE.iter().find(|(n, _)| *n == name) {
        return Err(KernelError::Inexpressible { name, what });
    }
    if let Some((_, kernel)) = ITS_OWN.iter().find(|(n, _)| *n == name) {
        return Err(KernelError::ItsOwn { name, kernel });
    }
    Err(KernelError::Unknown { name, known: CONTROLS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_kernel_accepts() {
        for c in CONTROLS {
            assert!(c.kernel.len() <= 15 && c.kernel.starts_with("skyhaul_"), "{}", c.kernel);
            assert!(c.kernel.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", c.kernel);
            // The program says the same name, and a licence that the kernel accepts.
            for text in [c.kernel, "Dual BSD/GPL"] {
                let text = [text.as_bytes(), b"\0"].concat();
                assert!(c.object.windows(text.len()).any(|w| w == text), "{}: {text:?}", c.name);
            }
        }
        assert!(CONTROLS.is_sorted_by_key(|c| c.name));
    }

    #[test]
    fn what_cannot_be_expressed_is_refused_in_a_line() {
        assert_eq!(find("hark").map(|c| c.kernel), Ok("skyhaul_hark"));
        assert_eq!(find("skyhaul_wwplus").map(|c| c.name), Ok("westwood-plus"));
        let line = |name| find(name).expect_err("is refused").to_string();
        assert_eq!(
            line("peach"),
            "peach cannot run in the kernel, which gives a congestion control no means to send dummy segments"
        );
        assert_eq!(line("cubic"), "the kernel has cubic of its own: choose it by the name cubic");
        assert_eq!(line("newreno"), "the kernel has newreno of its own: choose it by the name reno");
        assert!(line("hrk").contains("is no control for the kernel: write one of gaimd, hark, "));
    }
}
