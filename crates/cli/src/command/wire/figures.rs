//! The counters of a stack: one list for the Prometheus page and the key `counters` of JSON.

use serde_json::{Map, Value, json};
use skyhaul_gateway::metrics::Page;
use skyhaul_net::host::{Counts, Host, Memory};
use skyhaul_wire::Refusal;

/// A value with its label.
struct Sample {
    label: Option<&'static str>,
    value: f64,
}

/// The values of one metric.
struct Figure {
    /// Name; ends in `_total` for a counter.
    name: &'static str,
    help: &'static str,
    /// Name of the label, if there are several values.
    by: Option<&'static str>,
    samples: Vec<Sample>,
}

/// All metrics of a stack.
pub(super) struct Figures(Vec<Figure>);

impl Figures {
    /// The metrics of a host, its interface and its thread; processor time in seconds.
    pub(super) fn of(host: &Host, refused: u64, dropped: u64, cpu: f64) -> Self {
        let mut all = Self(Vec::new());
        all.connections(host);
        all.handshakes(host);
        all.traffic(host);
        all.refusals(host.counts(), &host.memory());
        all.memory(host);
        let help = "Packets that the interface refused";
        all.one("interface_packets_refused_total", help, refused);
        let help = "Packets of the kernel dropped because the interface's queue was full";
        all.one("interface_packets_dropped_total", help, dropped);
        let value = vec![Sample { label: None, value: cpu }];
        let help = "Processor time of the stack's thread";
        all.0.push(Figure { name: "cpu_seconds_total", help, by: None, samples: value });
        all
    }

    fn one(&mut self, name: &'static str, help: &'static str, value: u64) {
        let samples = vec![Sample { label: None, value: value as f64 }];
        self.0.push(Figure { name, help, by: None, samples });
    }
    fn several(
        &mut self,
        name: &'static str,
        help: &'static str,
        by: &'static str,
        values: impl IntoIterator<Item = (&'static str, u64)>,
    ) {
        let sample = |(label, value)| Sample { label: Some(label), value: value as f64 };
        let samples = values.into_iter().map(sample).collect();
        self.0.push(Figure { name, help, by: Some(by), samples });
    }

    fn connections(&mut self, host: &Host) {
        let census = host.census();
        let l = &census.lives;
        let help = "Current connections by state; half-open ones are syn-received";
        self.several("connections", help, "state", census.states.iter().copied());
        self.one("connections_opened_total", "Connections that the stack opened", l.opened);
        let help = "Incoming connections whose handshake was completed";
        self.one("connections_accepted_total", help, l.accepted);
        let ends =
            [("closed", l.closed), ("reset", l.reset), ("vanished", l.vanished), ("aborted", l.aborted)];
        let help = "Connections that ended: closed in order, reset by the peer, unanswered, given up";
        self.several("connections_ended_total", help, "how", ends);
        self.one("timers", "Entries in the timer lists", census.timers);
    }

    /// Half-open connections, cookies, TIME-WAIT, and answers to segments of no connection.
    fn handshakes(&mut self, host: &Host) {
        let c = host.counts();
        self.one("half_open_connections", "Half-open connections", host.half_open() as u64);
        let help = "Half-open connections that were never completed";
        self.one("half_open_expired_total", help, c.half_open_expired);
        self.one("cookies_sent_total", "SYNs answered with a cookie", c.cookies_sent);
        self.one("cookies_accepted_total", "Connections established through a cookie", c.cookies_taken);
        let help = "SYN-ACKs, first or retransmitted, suppressed by the rate limit";
        self.one("syn_acks_withheld_total", help, c.syn_acks_withheld);
        let help = "Connections in TIME-WAIT that no application holds open";
        self.one("time_wait_connections", help, host.time_waits() as u64);
        let help = "Connections that left TIME-WAIT early because too many were in it";
        self.one("time_wait_cut_total", help, c.time_waits_cut);
        self.one("resets_sent_total", "Resets sent for segments of unknown connections", c.resets_out);
        let help = "Resets, echo replies, challenge ACKs and answers in TIME-WAIT suppressed by a rate limit";
        self.one("answers_withheld_total", help, c.answers_withheld);
    }

    fn traffic(&mut self, host: &Host) {
        let (c, t) = (host.counts(), host.census().traffic);
        self.one("packets_received_total", "Packets received", c.packets_in);
        self.one("packets_sent_total", "Packets sent", c.packets_out);
        self.one("segments_received_total", "Well-formed segments received", c.segments_in);
        let help = "Data segments sent, retransmissions included";
        self.one("segments_sent_total", help, t.segments_sent);
        self.one("segments_retransmitted_total", "Data segments retransmitted", t.retransmissions);
        self.one("retransmission_timeouts_total", "Expiries of the retransmission timer", t.timeouts);
        self.one("bytes_acknowledged_total", "Payload acknowledged by peers", t.bytes_acked);
        self.one("bytes_received_total", "Payload received in order", t.bytes_received);
        self.one("probes_sent_total", "Probes sent", t.probes_sent);
        self.one("probes_answered_total", "Probes answered", t.probes_answered);
        self.one("paths_narrowed_total", "Times the path MTU was lowered", c.paths_narrowed);
    }

    fn refusals(&mut self, counts: &Counts, memory: &Memory) {
        let help = "Packets and segments discarded, by reason";
        self.several("refusals_total", help, "reason", refusals(counts, memory));
    }

    fn memory(&mut self, host: &Host) {
        let (m, now) = (host.memory(), host.census().memory);
        let kinds = [
            ("payload", now.payload),
            ("beyond-gaps", now.beyond_gaps),
            ("records", now.records),
            ("half-open", now.half_open),
            ("time-wait", now.time_wait),
        ];
        self.several("memory_bytes", "Memory held by connections", "kind", kinds);
        self.one("memory_limit_bytes", "Limit of the memory held by connections", m.limit);
        self.one("memory_most_bytes", "Most memory held by connections so far", m.most);
        let help = "Times that a connection discarded out-of-order data for lack of memory";
        self.one("memory_reneged_total", help, m.reneged);
        self.one("memory_trimmed_total", "Times that an idle connection released buffer memory", m.trimmed);
    }

    /// A page for Prometheus.
    pub(super) fn page(&self) -> String {
        let mut page = Page::default();
        for f in &self.0 {
            let kind = if f.name.ends_with("_total") { "counter" } else { "gauge" };
            let mut family = page.family(f.name, kind, f.help);
            for s in &f.samples {
                let labels: Vec<(&str, &str)> = f.by.zip(s.label).into_iter().collect();
                family.sample(&labels, s.value);
            }
        }
        page.text()
    }

    /// The metrics as JSON, by the same names.
    pub(super) fn json(&self) -> Value {
        let figure = |f: &Figure| match f.by {
            None => json!(f.samples.first().map_or(0.0, |s| s.value)),
            Some(_) => f
                .samples
                .iter()
                .map(|s| (s.label.unwrap_or_default().to_owned(), json!(s.value)))
                .collect::<Map<_, _>>()
                .into(),
        };
        self.0.iter().map(|f| (f.name.to_owned(), figure(f))).collect::<Map<_, _>>().into()
    }
}

/// Packets and segments discarded, by reason, including reasons with a count of zero.
pub(super) fn refusals(c: &Counts, memory: &Memory) -> Vec<(&'static str, u64)> {
    let malformed = Refusal::ALL.iter().map(|why| (why.name(), c.refusals.of(*why)));
    let others = [
        ("to-another-address", c.not_ours),
        ("from-nobody", c.martians),
        ("udp", c.not_tcp),
        ("no-connection", c.strangers),
        ("no-room-for-syn", c.syns_dropped),
        ("never-completed", c.half_open_expired),
        ("no-memory", memory.refused),
        ("icmp-about-nothing", c.messages_refused),
    ];
    let rejected = Counts::reasons().map(|why| (why, c.rejected_as(why)));
    malformed.chain(others).chain(rejected).collect()
}
