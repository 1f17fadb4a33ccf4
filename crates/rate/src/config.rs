//! What files say of a protocol.

use crate::option::{Invalid, LARGEST, bytes};
use crate::{ssvp, tfrc};

/// Packet unless the application or the file says otherwise, bytes with headers.
pub const USUAL_PACKET: u64 = 1000;

/// A protocol, with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Config {
    /// TFRC (RFC 5348).
    Tfrc(tfrc::Config),
    /// SSVP, as far as it is published.
    Ssvp(ssvp::Config),
}

impl Config {
    /// What results call it. SSVP's rules are not published: what we have is called a reconstruction everywhere.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Tfrc(_) => "tfrc",
            Self::Ssvp(_) => "ssvp-reconstructed",
        }
    }
    /// A full packet with its headers, bytes, if the file says so.
    #[must_use]
    pub fn packet(&self) -> Option<u64> {
        match self {
            Self::Tfrc(c) => c.packet,
            Self::Ssvp(c) => c.packet,
        }
    }
    /// The same without defaults, for an application with packets of `usual` bytes that offers so many bit/s in the long
    /// run (`None`: as fast as it may). A packet has `header` bytes of headers.
    ///
    /// # Errors
    /// What is wrong, in a sentence that says what to write instead.
    pub fn resolve(&self, usual: Option<u64>, offered: Option<f64>, header: u32) -> Result<Self, Invalid> {
        let packet = self.packet().or(usual).unwrap_or(USUAL_PACKET);
        let least = u64::from(header) + crate::DATA_HEADER as u64;
        if !(least..=LARGEST).contains(&packet) {
            return Err(Invalid::Packet { size: packet, least });
        }
        match self {
            Self::Tfrc(c) => c.resolve(packet).map(Self::Tfrc),
            Self::Ssvp(c) => c.resolve(packet, offered).map(Self::Ssvp),
        }
    }
    /// Its packets may be marked instead of dropped (ECN), and what is marked counts as lost.
    #[must_use]
    pub fn ecn(&self) -> bool {
        match self {
            Self::Tfrc(c) => c.ecn,
            Self::Ssvp(c) => c.ecn,
        }
    }
    /// An oracle is to tell the receiver what the channel lost.
    #[must_use]
    pub fn asks_an_oracle(&self) -> bool {
        matches!(self, Self::Tfrc(c) if c.ignore_corruption)
    }
    /// How many datagrams may wait at the sender.
    pub(crate) fn queue(&self) -> usize {
        let queue = match self {
            Self::Tfrc(c) => c.queue,
            Self::Ssvp(c) => c.queue,
        };
        usize::try_from(queue).unwrap_or(usize::MAX)
    }
    /// A full packet with its headers, bytes, of a configuration that [`Self::resolve`] returned.
    #[must_use]
    pub fn segment(&self) -> u32 {
        self.packet().map_or(USUAL_PACKET as u32, |n| u32::try_from(n).unwrap_or(u32::MAX))
    }
    /// What the rate never exceeds, bytes per second.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        let most = match self {
            Self::Tfrc(c) => c.max_rate,
            Self::Ssvp(c) => c.max_rate,
        };
        most.map_or(f64::INFINITY, bytes)
    }
    /// Packets of unused time that a sender may make up for at once.
    pub(crate) fn burst(&self) -> u64 {
        match self {
            Self::Tfrc(c) => c.burst,
            Self::Ssvp(_) => 1,
        }
    }
}
