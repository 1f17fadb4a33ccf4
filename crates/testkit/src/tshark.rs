//! Captures as Wireshark reads them: the judge of what is written.

use std::path::Path;
use std::process::Command;

/// Display filter for packets that no sender may send: malformed, a wrong checksum of TCP, anything that Wireshark calls an error.
///
/// Linux writes 0xffff where the checksum is 0 (`skb_checksum_help`). Both are right in ones' complement arithmetic (RFC 1624 §3), but
/// Wireshark calls 0xffff wrong; one packet in 65,536 has it.
pub const INVALID: &str = "(_ws.malformed || tcp.checksum.status == 0 || _ws.expert.severity >= 8388608) && !(tcp.checksum == 0xffff)";

/// Packets of a capture that match a display filter.
///
/// # Panics
/// If tshark does not run, or reports an error in the file or in the filter.
pub fn count(file: &Path, filter: &str) -> u64 {
    let out = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        // The bytes of a test are no protocol, whatever is registered for a port that the kernel chose.
        .args(["-d", "tcp.port==1-65535,data", "-Y", filter])
        .output()
        .expect("tshark runs");
    assert!(out.status.success(), "{filter}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).lines().count() as u64
}
