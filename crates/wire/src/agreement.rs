//! The agreement between both ends of a connection, and the signalling of priorities to the network.

use core::num::NonZeroU32;

/// First field of the option that negotiates and marks probes (RFC 6994: an experiment's identifier, "PEAC"). It is
/// **not registered**: register it before public use, or set another one.
pub const PROBE_EXID: u32 = 0x5045_4143;
/// The same for the option that carries waves and the receiver's rate of TCP-Real ("REAL"). Not registered either.
pub const RATE_EXID: u32 = 0x5245_414c;
/// The same for the option that permits and sets the ratio of acknowledgements of RFC 5690, whose own numbers were never
/// assigned ("ACKR").
pub const ACK_RATIO_EXID: u32 = 0x4143_4b52;

/// How a probe is distinguished from data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Probes are neither sent nor understood.
    #[default]
    Off,
    /// Reserved bits of the header, without negotiation, as in the papers: for closed test beds only.
    Paper,
    /// An option with the probe's number, negotiated in the SYN. It passes every path that passes unknown options.
    Option,
    /// Reserved bits after negotiation: the option's space stays free for SACK. Option marks are understood too.
    Compact,
}

impl Profile {
    /// Probes are negotiated in the SYN.
    #[must_use]
    pub const fn negotiates(self) -> bool {
        matches!(self, Self::Option | Self::Compact)
    }
    /// Marks may be in reserved bits.
    #[must_use]
    pub const fn bits(self) -> bool {
        matches!(self, Self::Paper | Self::Compact)
    }
}

/// How low priority is encoded in the DS field. One plan per network: precedence has nothing below routine, so that
/// CS1 under it would be *more* than ordinary data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plan {
    /// Lower effort (RFC 8622): DSCP 000001.
    #[default]
    LowerEffort,
    /// The older scavenger class CS1 (RFC 3662): DSCP 001000.
    Scavenger,
    /// Precedence only: low priority is routine (0), everything else precedence 1.
    Precedence,
}

impl Plan {
    /// The six bits of a packet.
    #[must_use]
    pub const fn dscp(self, low_priority: bool) -> u8 {
        match (self, low_priority) {
            (Self::LowerEffort, true) => 0b00_0001,
            (Self::Scavenger, true) | (Self::Precedence, false) => 0b00_1000,
            _ => 0,
        }
    }
    /// Whether a packet with these six bits is of low priority.
    #[must_use]
    pub const fn is_low(self, dscp: u8) -> bool {
        match self {
            Self::LowerEffort => dscp == 0b00_0001,
            Self::Scavenger => dscp == 0b00_1000,
            Self::Precedence => dscp >> 3 == 0,
        }
    }
}

/// The probe capabilities in a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Bits of [`Capability::ANSWERS`] and so on.
    pub flags: u8,
    /// log2 of the largest number of probes answered per RTT; 0: no limit.
    pub log2_most: u8,
}

impl Capability {
    /// Answers probes.
    pub const ANSWERS: u8 = 0x01;
    /// Wants to send probes.
    pub const SENDS: u8 = 0x02;
    /// Takes the payload of NIL segments as data.
    pub const NIL: u8 = 0x04;
    /// Reserved bits may mark.
    pub const BITS: u8 = 0x08;
    /// Answers carry a D-SACK block.
    pub const DSACK: u8 = 0x10;
    /// A gateway takes data in a SYN, and asks for the cookie that lets it send some.
    pub const EARLY: u8 = 0x20;
    /// The window field of this SYN counts in the scale that the SYN announces, so that its data may be answered at once with
    /// more than 64 KiB. Whoever handles the segment applies the scale.
    pub const SCALED: u8 = 0x40;

    /// True if all of `flags` are stated.
    #[must_use]
    pub const fn has(self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

impl Default for Capability {
    fn default() -> Self {
        Self { flags: Self::ANSWERS | Self::SENDS | Self::NIL | Self::DSACK, log2_most: 0 }
    }
}

/// The context needed to interpret the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// How probes are marked.
    pub profile: Profile,
    /// The encoding of low priority.
    pub plan: Plan,
    /// Window scale that the sender of these segments advertised (RFC 7323), at most 14. The window field of a SYN is read and
    /// written without scale, even with [`Capability::SCALED`].
    pub window_shift: u8,
    /// The probe capabilities in a SYN.
    pub capability: Capability,
    /// Identifier of the option for probes.
    pub probe_exid: u32,
    /// DSCP of ordinary packets; 0 means that of the plan. Packets of low priority have the plan's DSCP.
    pub dscp: u8,
    /// The number of the gateway that sends these segments; it is announced with the probe capabilities, if these are
    /// negotiated.
    pub gateway: Option<NonZeroU32>,
    /// What that gateway states about data in a SYN: in a SYN a serial number and a token, four bytes each, in a SYN-ACK a
    /// cookie. It leaves no room for options other than MSS, window scale, SACK and timestamps.
    pub early: Option<[u8; 8]>,
}

impl Default for Agreement {
    fn default() -> Self {
        Self {
            profile: Profile::Off,
            plan: Plan::LowerEffort,
            window_shift: 0,
            capability: Capability::default(),
            probe_exid: PROBE_EXID,
            dscp: 0,
            gateway: None,
            early: None,
        }
    }
}

impl Agreement {
    /// DSCP of a packet.
    #[must_use]
    pub const fn class(&self, low_priority: bool) -> u8 {
        if low_priority || self.dscp == 0 { self.plan.dscp(low_priority) } else { self.dscp }
    }
    /// With this profile, and defaults otherwise.
    #[must_use]
    pub fn with(profile: Profile) -> Self {
        let mut a = Self { profile, ..Self::default() };
        if profile == Profile::Compact {
            a.capability.flags |= Capability::BITS;
        }
        a
    }
}
