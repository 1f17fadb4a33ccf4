//! What a connection on the wire was told and what it said, to be done again in the simulator's endpoint.

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
    /// The application wrote so many bytes.
    Write(u64),
    /// The application read so many bytes.
    Read(u64),
    /// The application reads everything the moment it arrives.
    Sink,
    /// The application took back what was not sent yet.
    TakeBack,
    /// What had arrived beyond a gap was forgotten.
    Renege,
    /// Memory was short, and no more than so many bytes were offered; or it was short no more.
    Offer(Option<u64>),
    /// The application has no more data.
    Shutdown,
    /// The application has closed both ways.
    Abandon,
    /// The application gave up.
    Abort,
    /// It began with a cookie: nobody knows when.
    Untimed,
    /// The path proved to be narrower.
    Narrow(u32),
    /// Probes carry numbers from now on, or none.
    Number(bool),
    /// It was told what an earlier connection has learnt of the path.
    Recall(PathState),
    /// It was asked for what it has to send, and sent this.
    Sent(Vec<Segment>),
}

/// What a connection was told, and what it said.
#[derive(Clone, Debug)]
pub struct Journal {
    origin: Origin,
    ops: Vec<(Instant, Op)>,
}

/// How the connection began.
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

/// Where a replay first differs from what was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Number of the step, from 0.
    pub step: usize,
    /// When it happened.
    pub at: Instant,
    /// What was sent on the wire.
    pub recorded: Vec<Segment>,
    /// What was sent now.
    pub replayed: Vec<Segment>,
}

impl Journal {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, ops: Vec::new() }
    }
    pub(super) fn op(&mut self, now: Instant, op: Op) {
        self.ops.push((now, op));
    }

    /// Everything that happened, in order.
    #[must_use]
    pub fn ops(&self) -> &[(Instant, Op)] {
        &self.ops
    }
    /// Segments that were sent.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.ops.iter().map(|(_, op)| if let Op::Sent(s) = op { s.len() } else { 0 }).sum()
    }
    /// Segments that arrived.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.ops.iter().filter(|(_, op)| matches!(op, Op::Handle(_))).count()
    }

    /// Does it all again in the endpoint of the simulator, which keeps lengths in place of bytes.
    ///
    /// # Errors
    /// The first step at which it says something else.
    pub fn replay(&self) -> Result<(), Box<Difference>> {
        let mut c: Connection<Counted> = self.origin.open();
        for (step, (at, op)) in self.ops.iter().enumerate() {
            let now = *at;
            match op {
                // What it was refused for is part of the endpoint's state, and shows in what follows.
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
                Op::Abort => c.abort(now),
                Op::Untimed => c.forget_when_it_began(),
                Op::Narrow(limit) => c.narrow(now, *limit),
                Op::Number(ids) => c.number_probes(*ids),
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
