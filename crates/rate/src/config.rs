//! Configuration of a protocol in files.

use crate::option::{Invalid, LARGEST, bytes};
use crate::{ssvp, tfrc};

/// Default packet size, bytes including headers, if neither application nor file gives one.
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
    /// The name in results. SSVP's rules are not published, so our version is called a reconstruction everywhere.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Tfrc(_) => "tfrc",
            Self::Ssvp(_) => "ssvp-reconstructed",
        }
    }
    /// Size of a full packet with its headers, bytes, if the file gives it.
    #[must_use]
    pub fn packet(&self) -> Option<u64> {
        match self {
            Self::Tfrc(c) => c.packet,
            Self::Ssvp(c) => c.packet,
        }
    }
    /// The configuration with defaults filled in, for an application with packets of `usual` bytes and this average
    /// bit rate (`None`: as fast as possible). A packet has `header` bytes of headers.
    ///
    /// # Errors
    /// An error in a sentence that says what to write instead.
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
    /// Whether its packets are ECN-capable; a marked packet counts as lost.
    #[must_use]
    pub fn ecn(&self) -> bool {
        match self {
            Self::Tfrc(c) => c.ecn,
            Self::Ssvp(c) => c.ecn,
        }
    }
    /// Whether an oracle must report channel losses to the receiver.
    #[must_use]
    pub fn asks_an_oracle(&self) -> bool {
        matches!(self, Self::Tfrc(c) if c.ignore_corruption)
    }
    /// Maximum number of datagrams waiting at the sender.
    pub(crate) fn queue(&self) -> usize {
        let queue = match self {
            Self::Tfrc(c) => c.queue,
            Self::Ssvp(c) => c.queue,
        };
        usize::try_from(queue).unwrap_or(usize::MAX)
    }
    /// Size of a full packet with its headers, bytes, of a configuration that [`Self::resolve`] returned.
    #[must_use]
    pub fn segment(&self) -> u32 {
        self.packet().map_or(USUAL_PACKET as u32, |n| u32::try_from(n).unwrap_or(u32::MAX))
    }
    /// Upper limit of the rate, bytes per second.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        let most = match self {
            Self::Tfrc(c) => c.max_rate,
            Self::Ssvp(c) => c.max_rate,
        };
        most.map_or(f64::INFINITY, bytes)
    }
    /// Packets of unused time that a sender may send at once.
    pub(crate) fn burst(&self) -> u64 {
        match self {
            Self::Tfrc(c) => c.burst,
            Self::Ssvp(_) => 1,
        }
    }
}
