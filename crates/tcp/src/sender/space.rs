//! The send space (RFC 9293 §3.3.1): data written by the application, the peer's window, and the send position.

use crate::config::Config;
use crate::loss::Board;
use skyhaul_cc::Blocked;

/// State of our FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinState {
    /// The application may still write.
    Open,
    /// To be sent after the last byte.
    Wanted,
    /// Sent and in the scoreboard.
    Sent,
}

/// Offsets of the stream, bytes; the first byte of data has offset 1.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// `SND.NXT`: start of the next transmission; below `SND.MAX` during go-back-N.
    pub(super) nxt: u64,
    /// End of the written data.
    pub(super) end: u64,
    /// Right edge of the peer's window.
    pub(super) edge: u64,
    /// `SND.WND`, bytes.
    pub(super) window: u64,
    /// The largest window that the peer has offered, bytes.
    pub(super) max_window: u64,
    /// `floor(min(SND.WND, send buffer) / SMSS)`.
    pub(super) rwnd: f64,
    /// Payload of a full segment, bytes.
    pub(super) smss: u32,
    pub(super) fin: FinState,
    /// The next segment is sent even if silly window avoidance would hold it back.
    pub(super) force_small: bool,
}

/// Offset of the first byte of data: the SYN has offset 0.
pub(crate) const FIRST: u64 = 1;

impl Space {
    pub(super) fn new(smss: u32) -> Self {
        Self {
            nxt: FIRST,
            end: FIRST,
            edge: FIRST,
            window: 0,
            max_window: 0,
            rwnd: 0.0,
            smss,
            fin: FinState::Open,
            force_small: false,
        }
    }

    /// Updates the peer's window from an acknowledgement of everything before `ack`.
    #[inline(always)]
    pub(super) fn update_window(&mut self, ack: u64, window: u64, send_buffer: u64) {
        if window != self.window {
            self.window = window;
            self.max_window = self.max_window.max(window);
            self.measure_window(send_buffer);
        } else if self.edge >= ack + window {
            return;
        }
        self.edge = ack + window;
    }

    /// Computes [`Self::rwnd`], the window in segments.
    #[inline(always)]
    pub(super) fn measure_window(&mut self, send_buffer: u64) {
        let window = self.window.min(send_buffer);
        self.rwnd = (window / u64::from(self.smss)) as f64;
    }

    /// The size of a full segment, bytes, as a real number.
    #[inline]
    pub(super) fn smss_f(&self) -> f64 {
        f64::from(self.smss)
    }

    /// `SND.NXT - SND.UNA`, bytes.
    #[inline]
    pub(super) fn flight(&self, board: &Board) -> u64 {
        self.nxt - board.una()
    }

    /// Length of the next new segment, 0 for a lone FIN, or the reason why there is none. A short segment uses up
    /// [`Self::force_small`].
    pub(super) fn new_len(&mut self, board: &Board, config: &Config) -> Result<u32, Blocked> {
        let max = board.max();
        let waiting = self.end.saturating_sub(max);
        if waiting == 0 {
            // A FIN uses one byte of the window.
            return match self.fin {
                FinState::Wanted if self.edge > max => Ok(0),
                FinState::Wanted => Err(Blocked::Rwnd),
                _ => Err(Blocked::App),
            };
        }
        let smss = u64::from(self.smss);
        let room = self.edge.saturating_sub(max).min(config.send_buffer.saturating_sub(max - board.una()));
        let len = waiting.min(smss).min(room);
        if len == 0 {
            return Err(Blocked::Rwnd);
        }
        if len < smss && !core::mem::take(&mut self.force_small) {
            // Sender-side silly window avoidance (RFC 9293 §3.8.6.2.1): a small segment is sent only if it empties
            // the queue and Nagle permits, or covers half of the largest window that the peer ever offered.
            let empties =
                len == waiting && (!config.nagle || board.is_empty() || self.fin == FinState::Wanted);
            if !(empties || 2 * len >= self.max_window) {
                return Err(if len < waiting { Blocked::Rwnd } else { Blocked::App });
            }
        }
        Ok(len as u32)
    }

    /// Whether the FIN is sent with a new segment of `len` bytes at `seq`; marks it as sent.
    pub(super) fn take_fin(&mut self, seq: u64, len: u32) -> bool {
        let fin = self.fin == FinState::Wanted && seq + u64::from(len) == self.end && self.end < self.edge;
        if fin {
            self.fin = FinState::Sent;
        }
        fin
    }
}
