//! A recording of everything that entered and left a connection, for replay in the simulator's endpoint.

use skyhaul_base::{Instant, Rng};
use skyhaul_cc::PathState;
use skyhaul_tcp::{Config, Connection, Counted, Segment, Seq, Store};

/// Something that happened to a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A segment arrived.
    Handle(Box<Segment>),
    /// A deadline passed.
    Timeout,
    /// The application wrote this many bytes.
    Write(u64),
    /// The application read this many bytes.
    Read(u64),
    /// The application reads all data on arrival.
    Sink,
    /// The application took back unsent data.
    TakeBack,
    /// Data beyond a gap was discarded.
    Renege,
    /// Memory was short, and the connection offered at most this many bytes; `None` once it was no longer short.
    Offer(Option<u64>),
    /// The application has no more data.
    Shutdown,
    /// The application closed both directions.
    Abandon,
    /// The application aborted.
    Abort,
    /// Another connection took its addresses and ports.
    Supersede,
    /// The connection started from a cookie: its start time is unknown.
    Untimed,
    /// The path MTU became smaller: a packet has room for this many bytes of options and payload.
    Narrow(u32),
    /// Another connection showed that the path works again.
    Retry,
    /// From now on probes carry numbers, or no longer do.
    Number(bool),
    /// Its SYN may carry this many bytes of data.
    OfferEarly(u32),
    /// It takes the data of the peer's SYN; whether the window of that SYN is scaled.
    TakeEarly(bool),
    /// It received the path state of an earlier connection.
    Recall(PathState),
    /// It was polled and sent these segments.
    Sent(Vec<Segment>),
}

/// Inputs and outputs of a connection.
#[derive(Clone, Debug)]
pub struct Journal {
    origin: Origin,
    ops: Vec<(Instant, Op)>,
}

/// Initial state of the connection.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) config: Config,
    pub(super) cc: skyhaul_cc::Config,
    pub(super) active: bool,
    pub(super) opened_at: Instant,
    pub(super) iss: Seq,
    pub(super) timestamp_offset: u32,
    pub(super) rng: Rng,
}

impl Origin {
    pub(super) fn open<S: Store>(&self) -> Connection<S> {
        let control = self.cc.build(&self.config.rules);
        let mut c = if self.active {
            Connection::connect(self.opened_at, self.config, control, self.iss, self.rng.clone())
        } else {
            Connection::listen(self.config, control, self.iss, self.rng.clone())
        };
        c.set_timestamp_offset(self.timestamp_offset);
        c
    }
}

/// The first difference between a replay and the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Number of the step, from 0.
    pub step: usize,
    /// When it happened.
    pub at: Instant,
    /// Segments sent in the recording.
    pub recorded: Vec<Segment>,
    /// Segments sent in the replay.
    pub replayed: Vec<Segment>,
}

impl Journal {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, ops: Vec::new() }
    }
    pub(super) fn op(&mut self, now: Instant, op: Op) {
        self.ops.push((now, op));
    }

    /// All events, in order.
    #[must_use]
    pub fn ops(&self) -> &[(Instant, Op)] {
        &self.ops
    }
    /// Number of segments sent.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.ops.iter().map(|(_, op)| if let Op::Sent(s) = op { s.len() } else { 0 }).sum()
    }
    /// Number of segments received.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.ops.iter().filter(|(_, op)| matches!(op, Op::Handle(_))).count()
    }

    /// Replays everything in the simulator's endpoint, which stores lengths instead of bytes.
    ///
    /// # Errors
    /// The first step whose output differs.
    pub fn replay(&self) -> Result<(), Box<Difference>> {
        let mut c: Connection<Counted> = self.origin.open();
        for (step, (at, op)) in self.ops.iter().enumerate() {
            let now = *at;
            match op {
                // The reason of a refusal is part of the endpoint's state, and shows in later steps.
                Op::Handle(seg) => drop(c.handle(now, seg, &[])),
                Op::Timeout => c.handle_timeout(now),
                Op::Write(n) => drop(c.write(now, &[], *n)),
                Op::Read(n) => drop(c.read(&mut [], *n)),
                Op::Sink => c.discard_reads(),
                Op::TakeBack => drop(c.truncate()),
                Op::Renege => c.renege(),
                Op::Offer(most) => c.offer_at_most(*most),
                Op::Shutdown => c.shutdown(now),
                Op::Abandon => c.abandon(now),
                Op::Supersede => c.end_time_wait(),
                Op::Abort => c.abort(now),
                Op::Untimed => c.forget_when_it_began(),
                Op::Narrow(limit) => c.narrow(now, *limit),
                Op::Retry => {
                    c.retry(now);
                }
                Op::Number(ids) => c.number_probes(*ids),
                Op::OfferEarly(most) => c.offer_early(*most),
                Op::TakeEarly(scaled) => c.take_early(*scaled),
                Op::Recall(state) => c.recall(*state),
                Op::Sent(recorded) => {
                    let replayed: Vec<Segment> = std::iter::from_fn(|| c.poll_transmit(now)).collect();
                    if replayed != *recorded {
                        return Err(Box::new(Difference {
                            step,
                            at: now,
                            recorded: recorded.clone(),
                            replayed,
                        }));
                    }
                }
            }
        }
        Ok(())
    }
}
