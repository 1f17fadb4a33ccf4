//! Frames of video.

use skyhaul_base::Instant;

/// How a frame is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameType {
    /// Independently.
    I = 0,
    /// From the previous I or P frame.
    P = 1,
    /// From the I or P frames on both sides of it.
    B = 2,
}

impl FrameType {
    /// Number of types.
    pub const COUNT: usize = 3;
    /// All types, in the order of their index (`kind as usize`).
    pub const ALL: [Self; Self::COUNT] = [Self::I, Self::P, Self::B];

    /// The letter of the type.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::I => 'I',
            Self::P => 'P',
            Self::B => 'B',
        }
    }
    /// The type of a letter.
    #[must_use]
    pub fn of(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.letter() == letter)
    }
    /// Whether other frames are coded from it.
    #[must_use]
    pub const fn is_anchor(self) -> bool {
        !matches!(self, Self::B)
    }
}

/// Whether the sender sent a frame, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameStatus {
    /// It was passed to the transport.
    Sent,
    /// The buffer was full: frames that no other frame depends on are skipped first.
    Skipped,
    /// The coder was changing its rate.
    Gap,
}

/// A frame at the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Its number in the video, from 0: its display time, in frames after the first one.
    pub number: u64,
    /// Its type.
    pub kind: FrameType,
    /// When it was produced.
    pub at: Instant,
    /// Payload bytes passed to the transport for it, including header and padding; 0 if it was not sent.
    pub bytes: u64,
    /// Packets of the application; 0 if it was not sent.
    pub packets: u32,
    /// Whether it was sent, or why not.
    pub status: FrameStatus,
    /// The current rate setting of the coder, bit/s.
    pub target: f64,
}
