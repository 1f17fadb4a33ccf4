//! What an end counts.

use skyhaul_base::Duration;

/// Counters of an end. Bytes are those in the segment, outer headers included, where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that were numbered and sent.
    pub sources: u64,
    /// Datagrams that went along with one of these.
    pub joined: u64,
    /// Bytes of all these datagrams, without any header of a frame.
    pub source_bytes: u64,
    /// Bytes of these datagrams in the form in which they were carried.
    pub carried_bytes: u64,
    /// Bytes of all headers of the frames of these datagrams.
    pub header_bytes: u64,
    /// Datagrams that passed without repair.
    pub passed: u64,
    /// Datagrams that the gateway's own queue dropped.
    pub dropped: u64,
    /// Datagrams refused because they do not fit.
    pub too_big: u64,
    /// Repair symbols sent.
    pub symbols: u64,
    /// Bytes of repair symbols.
    pub symbol_bytes: u64,
    /// Repair symbols that became useless before their turn.
    pub expired_symbols: u64,
    /// Repeats sent.
    pub repeats: u64,
    /// Bytes of repeats.
    pub repeat_bytes: u64,
    /// Reports sent.
    pub reports: u64,
    /// Bytes of reports.
    pub report_bytes: u64,
    /// Datagrams with a number delivered.
    pub delivered: u64,
    /// Datagrams delivered that had gone along with one of these.
    pub separated: u64,
    /// Delivered datagrams that the code recovered.
    pub recovered: u64,
    /// Delivered datagrams for which the receiver no longer waited.
    pub late: u64,
    /// Datagrams that were never delivered.
    pub lost: u64,
    /// Datagrams with a number, counted as delivered, that could not be restored, since their reference was gone.
    pub unreadable: u64,
    /// Frames refused: seen before, too old, or contradictory.
    pub refused: u64,
    /// Sum of the times that datagrams waited for earlier ones.
    pub held: Duration,
    /// The longest time that a datagram waited for earlier ones.
    pub longest_held: Duration,
}
