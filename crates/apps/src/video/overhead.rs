//! How much headers add to a film.

use super::packet::Cut;

/// Overhead of headers, averaged over about the last group of pictures. Smaller frames have fewer full packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overhead {
    /// Mean bytes of frames, and of their packets with headers.
    film: f64,
    sent: f64,
}

impl Overhead {
    /// Weight of a frame in the average.
    const SHARE: f64 = 1.0 / 16.0;

    /// Before the first frame: that of full packets.
    pub(super) fn new(cut: Cut, header: u32) -> Self {
        let payload = cut.payload as f64;
        Self { film: payload, sent: payload + f64::from(header) }
    }
    /// The next frame: its bytes, and those of its packets with headers.
    pub(super) fn frame(&mut self, film: f64, sent: f64) {
        self.film += (film - self.film) * Self::SHARE;
        self.sent += (sent - self.sent) * Self::SHARE;
    }
    /// The fraction of a rate of whole packets that belongs to the video.
    pub(super) fn part(&self) -> f64 {
        self.film / self.sent
    }
}
