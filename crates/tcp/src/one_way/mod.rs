//! A flow of data in one direction whose handshake is not modelled, as in the simulations of the papers: one [`Sender`]
//! and one [`Receiver`] with as much of a connection around them as such a flow can need. Two whole connections
//! established with the same configuration would exchange the same segments.
//!
//! Segments are [`Head`]s, small enough to be carried by an event; what few segments have besides is [`Extras`].

mod sink;
mod source;

use crate::ack_ratio::{AckRatio, LONGEST_HELD};
use crate::config::{Config, LossDetection, ProbeNegotiation};
use crate::connection::scale_for;
use crate::error::Rejected;
use crate::ration::Ration;
use crate::receiver::Receiver;
#[cfg(doc)]
use crate::segment::Extras;
use crate::segment::{Flags, Head};
use crate::sender::{FIRST, Peer, Sender};
use crate::store::Store;
use crate::timestamps::Timestamps;
use alloc::boxed::Box;
use alloc::sync::Arc;
pub use sink::Sink;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Algorithm, CongestionControl};
pub use source::Source;

/// What the handshake would have found out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Its RTT; the congestion control may use it, the estimator does not.
    pub rtt: Option<Duration>,
}

/// What both ends of such a flow agree on.
#[derive(Clone, Copy, Debug)]
struct Agreed {
    sack: bool,
    probes: bool,
    timestamps: bool,
    waves: bool,
    ecn: bool,
    ack_cc: Option<AckRatio>,
    scale: u8,
}

impl Agreed {
    /// Both ends are configured alike.
    fn new(config: &Config, cc: &Algorithm) -> Self {
        let policy = cc.policy();
        Self {
            sack: config.sack.unwrap_or_else(|| policy.recovery.uses_pipe()),
            probes: config.probes == ProbeNegotiation::Negotiate && policy.probes,
            timestamps: config.timestamps,
            waves: config.receiver_rate && policy.receiver_rate,
            ecn: config.agrees_on_ecn(config),
            ack_cc: AckRatio::new(config.ack_cc),
            scale: if config.window_scaling { scale_for(config.receive_buffer) } else { 0 },
        }
    }

    /// What a 16-bit field can say of a window.
    #[inline]
    fn announced(scale: u8, window: u64) -> u32 {
        (window.min(65_535 << scale) >> scale << scale) as u32
    }
}

/// Both ends of a flow, not connected by anything: whoever drives them carries segments from one to the other.
///
/// # Panics
/// Never; what a peer could not have sent is refused.
#[must_use]
pub fn one_way<S: Store>(
    now: Instant,
    config: &Arc<Config>,
    cc: Algorithm,
    rng: Rng,
    known: Known,
) -> (Source<S>, Sink<S>) {
    let agreed = Agreed::new(config, &cc);
    let stamps = || agreed.timestamps.then(|| Box::new(Timestamps::new(config)));
    let buffer = config.first_receive_buffer();
    let snack = agreed.sack && config.loss_detection == LossDetection::Snack;
    let mut sender = Sender::new(config, cc, rng);
    sender.start(
        now,
        &Peer {
            mss: config.mss,
            options: 0,
            window: if config.window_scaling { buffer } else { buffer.min(65_535) },
            sack: agreed.sack,
            snack,
            probes: agreed.probes,
            rtt: known.rtt,
            rtt_is_sample: false,
            syn_repeated: false,
            syn_lost: false,
        },
    );
    let mut receiver = Receiver::new(config);
    let answers = match config.probes {
        ProbeNegotiation::Negotiate => agreed.probes,
        ProbeNegotiation::Paper => true,
        ProbeNegotiation::Off => false,
    };
    receiver.start(agreed.sack, answers, agreed.timestamps);
    receiver.discard();
    if let Some(ratio) = &agreed.ack_cc {
        receiver.acknowledge_every(ratio.ratio(), LONGEST_HELD);
    }
    let source = Source {
        sender,
        stamps: stamps(),
        exception: agreed.ack_cc.map(|ratio| Box::new(Exception::with_acks(ratio))),
        window: Agreed::announced(agreed.scale, buffer),
        dresses: agreed.waves || agreed.ecn || agreed.ack_cc.is_some(),
        waves: agreed.waves,
        ecn: agreed.ecn.then_some(config.ecn_plus),
    };
    let sink = Sink {
        receiver,
        stamps: stamps(),
        exception: agreed.ack_cc.map(|_| Box::default()),
        last_ack_sent: FIRST,
        scale: agreed.scale,
        ecn: agreed.ecn,
        ack_cc: agreed.ack_cc.is_some(),
    };
    (source, sink)
}

/// What an end needs once something out of the ordinary has happened.
#[derive(Clone, Copy, Debug, Default)]
struct Exception {
    challenges: Ration,
    /// Acknowledgements that the data end owes.
    acks_due: u32,
    reset_due: Option<Head>,
    closed: bool,
    /// A router has marked data, and the source has not yet said that it reduced its window (RFC 3168 §6.1.3).
    echo: bool,
    /// For how many segments the sink sends an acknowledgement, where the source decides that.
    ack_ratio: Option<AckRatio>,
}

impl Exception {
    /// Of a source that decides how many acknowledgements there are: none of them is ordinary.
    fn with_acks(ratio: AckRatio) -> Self {
        Self { ack_ratio: Some(ratio), ..Self::default() }
    }
    /// Nobody is here any more (RFC 9293 §3.10.7.1): everything but a reset is answered with one.
    fn refuse(&mut self, head: &Head) -> Result<(), Rejected> {
        if !head.flags.has(Flags::RST) {
            self.reset_due = Some(Head { seq: head.ack, flags: Flags::RST, ..Head::default() });
        }
        Err(Rejected::Closed)
    }
}
