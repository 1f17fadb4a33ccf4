//! Frames of video.

use skyhaul_base::Instant;

/// What a frame is coded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameType {
    /// By itself.
    I = 0,
    /// From the I or P frame before it.
    P = 1,
    /// From the I or P frames on both sides of it.
    B = 2,
}

impl FrameType {
    /// How many types there are.
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
    /// Other frames are coded from it.
    #[must_use]
    pub const fn is_anchor(self) -> bool {
        !matches!(self, Self::B)
    }
}

/// What became of a frame at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was given to the transport.
    Sent,
    /// The buffer was full: frames from which no other is coded are the first to go.
    Skipped,
    /// The coder was changing its rate.
    Gap,
}

/// A frame at the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Its number in the film, from 0: when it is to be seen, in frames after the first one.
    pub number: u64,
    /// Its type.
    pub kind: FrameType,
    /// When it was produced.
    pub at: Instant,
    /// Bytes of payload that the transport was given for it, header and padding included; 0 if it was given none.
    pub bytes: u64,
    /// Packets of the application; 0 if it was not sent.
    pub packets: u32,
    /// What became of it.
    pub fate: Fate,
    /// The rate that the coder is set to, in bit/s.
    pub target: f64,
}
