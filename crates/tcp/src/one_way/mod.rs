//! One-way data flows whose handshake is not modelled, as in the simulations of the papers: a [`Sender`] and a
//! [`Receiver`] with the minimum of connection state that such a flow needs. Two full connections with the same
//! configuration would exchange the same segments.
//!
//! Segments are [`Head`]s, small enough for an event to carry; the rare rest of a segment is in [`Extras`].

mod sink;
mod source;

use crate::accecn::Echo;
use crate::ack_ratio::{AckRatio, LONGEST_HELD};
use crate::config::{Config, LossDetection, ProbeNegotiation};
use crate::connection::{expressible, scale_for};
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

/// The result of the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct HandshakeResult {
    /// RTT of the handshake. The congestion control may use it, the estimator does not.
    pub rtt: Option<Duration>,
}

/// What the ends would agree on in a handshake.
#[derive(Clone, Copy, Debug)]
struct NegotiatedOptions {
    sack: bool,
    probes: bool,
    timestamps: bool,
    waves: bool,
    ecn: bool,
    accurate: bool,
    ack_cc: Option<AckRatio>,
    scale: u8,
}

impl NegotiatedOptions {
    /// The agreement of two ends with the same configuration.
    fn new(config: &Config, cc: &Algorithm) -> Self {
        let policy = cc.policy();
        Self {
            sack: config.sack.unwrap_or_else(|| policy.recovery.uses_pipe()),
            probes: config.probes == ProbeNegotiation::Negotiate && policy.probes,
            timestamps: config.timestamps,
            waves: config.receiver_rate && policy.receiver_rate,
            ecn: config.agrees_on_ecn(config),
            accurate: config.agrees_on_accurate_ecn(config),
            ack_cc: AckRatio::new(config.ack_cc),
            scale: if config.window_scaling { scale_for(config.receive_buffer) } else { 0 },
        }
    }
}

/// Creates both ends of a flow. The caller carries segments from one to the other.
#[must_use]
pub fn one_way<S: Store>(
    now: Instant,
    config: &Arc<Config>,
    cc: Algorithm,
    rng: Rng,
    known: HandshakeResult,
) -> (Source<S>, Sink<S>) {
    let options = NegotiatedOptions::new(config, &cc);
    let stamps = || options.timestamps.then(|| Box::new(Timestamps::new(config)));
    let buffer = config.first_receive_buffer();
    let snack = options.sack && config.loss_detection == LossDetection::Snack;
    let mut sender = Sender::new(config, cc, rng);
    if options.accurate {
        sender.count_marks(false);
    }
    sender.start(
        now,
        &Peer {
            mss: config.mss,
            options: 0,
            window: if config.window_scaling { buffer } else { buffer.min(65_535) },
            sack: options.sack,
            snack,
            probes: options.probes,
            rtt: known.rtt,
            rtt_is_sample: false,
            syn_repeated: false,
            syn_lost: false,
            early: 0,
        },
    );
    let mut receiver = Receiver::new(config);
    receiver.start(options.sack, config.probes.answers(options.probes), options.timestamps);
    receiver.discard();
    if let Some(ratio) = &options.ack_cc {
        receiver.acknowledge_every(ratio.ratio(), LONGEST_HELD);
    }
    let source = Source {
        sender,
        stamps: stamps(),
        exception: Exception::of(options.ack_cc, options.accurate),
        window: expressible(buffer, options.scale),
        extended: options.waves || options.ecn || options.ack_cc.is_some(),
        waves: options.waves,
        ecn: options.ecn.then_some(config.ecn_plus),
        accurate: options.accurate,
    };
    let sink = Sink {
        receiver,
        stamps: stamps(),
        exception: Exception::of(options.ack_cc, options.accurate),
        last_ack_sent: FIRST,
        scale: options.scale,
        ecn: options.ecn,
        ack_cc: options.ack_cc.is_some(),
    };
    (source, sink)
}

/// State for rare situations, of a source or a sink. While it exists, segments do not take the fast path.
#[derive(Clone, Copy, Debug, Default)]
struct Exception {
    /// Rate limit of challenge ACKs.
    challenges: Ration,
    /// Source: acknowledgements due.
    acks_due: u32,
    reset_due: Option<Head>,
    /// Reset: every later segment is refused.
    closed: bool,
    /// Sink: a router has marked data, and the source has not yet signalled CWR (RFC 3168 §6.1.3).
    echo: bool,
    /// Source: the sink's ACK ratio, if the source controls it.
    ack_ratio: Option<AckRatio>,
    /// The feedback of accurate ECN. A sink needs it; with it, neither end has a fast path.
    accurate: Option<Echo>,
}

impl Exception {
    /// For ends with ACK congestion control or accurate ECN, so that no segment takes the fast path.
    fn of(ack_ratio: Option<AckRatio>, accurate: bool) -> Option<Box<Self>> {
        let accurate = accurate.then(|| Echo::new(false));
        (ack_ratio.is_some() || accurate.is_some())
            .then(|| Box::new(Self { ack_ratio, accurate, ..Self::default() }))
    }
    /// Handles a segment to a closed end (RFC 9293 §3.10.7.1): everything but a reset is answered with a reset.
    fn refuse(&mut self, head: &Head) -> Result<(), Rejected> {
        if !head.flags.has(Flags::RST) {
            self.reset_due = Some(Head { seq: head.ack, flags: Flags::RST, ..Head::default() });
        }
        Err(Rejected::Closed)
    }
}
