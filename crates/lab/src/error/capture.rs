//! Packets that cannot be captured.

use skyhaul_wire::EncodeError;
use std::path::PathBuf;

/// Why packets cannot be captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Nothing is called so.
    #[error(
        "--pcap-at {word}: no such capture point; write sender, receiver{links}, or a link with .forward or .reverse"
    )]
    NoPlace {
        /// What was written.
        word: String,
        /// The links, each after a comma.
        links: String,
    },
    /// No flow is called so.
    #[error("{option} {word}: no such flow; write a flow group ({known}) or GROUP[INDEX]")]
    NoFlow {
        /// The option.
        option: &'static str,
        /// What was written.
        word: String,
        /// The groups.
        known: String,
    },
    /// The folder that is to hold the file does not exist.
    #[error("--pcap {}: the folder {} does not exist", path.display(), folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// The file holds something else.
    #[error("--pcap {}: skyhaul did not write this file: name another one, or overwrite it with --force", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A packet has no form on the wire.
    #[error("--pcap: a packet at {at} s cannot be written: {source}")]
    Packet {
        /// When, in seconds.
        at: f64,
        /// Why.
        source: EncodeError,
    },
}
