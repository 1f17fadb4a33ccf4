//! The segments of one flow in a part of a run: when each was sent, and when and how it ended.

use serde_json::{Value, json};
use skyhaul_base::Instant;
use skyhaul_sim::{Place, Sighting, Tap};
use skyhaul_trace::{Class, Event, Packet, Recorder};
use std::collections::BTreeMap;

/// Maximum number of segments; the answer says if more were left out.
const MOST: usize = 20_000;

/// A segment, in flight or after its end.
#[derive(Debug)]
struct Crossing {
    sent: Instant,
    end: Option<Instant>,
    kind: &'static str,
    backward: bool,
    seq: u32,
    outcome: &'static str,
}

/// Records the segments of one flow that are sent in a part of the run.
#[derive(Debug)]
pub(crate) struct Crossings {
    flow: u32,
    from: Instant,
    to: Instant,
    /// The packet of the latest event [`Event::Sent`]; its [`Sighting`] follows directly.
    latest: Option<Packet>,
    /// The highest sequence number sent, to recognise retransmissions.
    highest: Option<u32>,
    /// Segments in flight: their index in `list`, by their key.
    open: BTreeMap<u32, usize>,
    list: Vec<Crossing>,
    left_out: u64,
}

impl Crossings {
    /// Records the segments that `flow` sends from `from` up to `to`.
    pub(crate) fn new(flow: u32, from: Instant, to: Instant) -> Self {
        let (open, list) = (BTreeMap::new(), Vec::new());
        Self { flow, from, to, latest: None, highest: None, open, list, left_out: 0 }
    }

    /// The segments as JSON, a list per column.
    pub(crate) fn to_json(&self) -> Value {
        let column = |f: &dyn Fn(&Crossing) -> Value| self.list.iter().map(f).collect::<Value>();
        json!({
            "sent_s": column(&|c| json!(c.sent.as_secs_f64())),
            "end_s": column(&|c| json!(c.end.map(Instant::as_secs_f64))),
            "kind": column(&|c| json!(c.kind)),
            "backward": column(&|c| json!(c.backward)),
            "seq": column(&|c| json!(c.seq)),
            "fate": column(&|c| json!(c.outcome)),
            "left_out": self.left_out,
        })
    }

    fn sent(&mut self, now: Instant, sighting: &Sighting<'_>) {
        let Some(Packet { class, seq, .. }) = self.latest.take() else { return };
        // Sequence numbers wrap (RFC 9293 §3.4): a number up to half the range below the highest one is a
        // retransmission.
        let again = self.highest.is_some_and(|h| seq.wrapping_sub(h).wrapping_sub(1) > u32::MAX / 2);
        let kind = match class {
            Class::Probe => "probe",
            Class::Ack if sighting.segment.mark.is_answer() => "answer",
            Class::Ack => "ack",
            Class::Data if !sighting.backward && again => "again",
            Class::Data => "data",
        };
        if class == Class::Data && !sighting.backward && !again {
            self.highest = Some(seq);
        }
        if now < self.from || now > self.to {
            return;
        }
        if self.list.len() == MOST {
            self.left_out += 1;
            return;
        }
        self.open.insert(sighting.key, self.list.len());
        self.list.push(Crossing {
            sent: now,
            end: None,
            kind,
            backward: sighting.backward,
            seq,
            outcome: "on the way",
        });
    }

    fn end(&mut self, now: Instant, key: u32, outcome: &'static str) {
        if let Some(i) = self.open.remove(&key) {
            self.list[i].end = Some(now);
            self.list[i].outcome = outcome;
        }
    }
}

impl Recorder for Crossings {
    fn record(&mut self, _now: Instant, event: &Event) {
        if let Event::Sent { packet, .. } = event {
            self.latest = Some(*packet);
        }
    }
}

impl Tap for Crossings {
    const PACKETS: bool = true;

    fn packet(&mut self, now: Instant, sighting: &Sighting<'_>) {
        if sighting.flow != self.flow {
            return;
        }
        match sighting.place {
            Place::Sent => self.sent(now, sighting),
            Place::Arrived => self.end(now, sighting.key, "arrived"),
            Place::Lost { cause, .. } => self.end(now, sighting.key, cause.name()),
            Place::Entered { .. } | Place::Left { .. } | Place::Copied { .. } => {}
        }
    }
}
