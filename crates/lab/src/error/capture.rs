//! Errors of captures.

use skyhaul_wire::EncodeError;
use std::path::PathBuf;

/// Why packets cannot be captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// No capture point has this name.
    #[error(
        "--pcap-at {word}: no such capture point; write sender, receiver{links}, or a link with .forward or .reverse"
    )]
    NoPlace {
        /// What was written.
        word: String,
        /// The links, each preceded by a comma.
        links: String,
    },
    /// No flow has this name.
    #[error("{option} {word}: no such flow; write a flow group ({known}) or GROUP[INDEX]")]
    NoFlow {
        /// The option.
        option: &'static str,
        /// What was written.
        word: String,
        /// The groups.
        known: String,
    },
    /// The folder of the file does not exist.
    #[error("--pcap {}: the folder {} does not exist", path.display(), folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// The file is not a capture.
    #[error("--pcap {}: skyhaul did not write this file: name another one, or overwrite it with --force", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A packet cannot be encoded.
    #[error("--pcap: a packet at {at} s cannot be written: {source}")]
    Packet {
        /// When, in seconds.
        at: f64,
        /// Why.
        source: EncodeError,
    },
}
