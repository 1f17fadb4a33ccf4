//! Event logs in the qlog format (draft-ietf-quic-qlog-main-schema-14): JSON-SEQ files (RFC 7464). Events of TCP use
//! Skyhaul's own schema, described in docs/exports.md.

use alloc::format;
use alloc::string::String;
use serde_json::{Value, json};
use skyhaul_base::Instant;
use std::io::{self, Write};

/// Identifies the events of TCP, which no registered schema describes.
pub const EVENTS: &str = "urn:skyhaul:qlog:events:tcp";

/// What a log is about.
#[derive(Clone, Debug)]
pub struct LogMetadata<'a> {
    /// Title of the file.
    pub title: &'a str,
    /// What produced the events: a program and its version.
    pub description: &'a str,
    /// The flow or connection that was traced.
    pub object: &'a str,
    /// Protocol of the packets: "TCP" or "UDP".
    pub protocol: &'a str,
    /// Where the events were observed: "network", "client" or "server".
    pub vantage: &'a str,
    /// For the vantage point "network": the end, such as "client", whose packets count as sent.
    pub flow: Option<&'a str>,
    /// Time of day at time zero, as in RFC 3339; `None`: unknown.
    pub began: Option<&'a str>,
}

/// A log that is being written. After an error nothing more is written, and [`Self::finish`] returns it.
#[derive(Debug)]
pub struct Log<W: Write> {
    to: W,
    failed: Option<io::Error>,
}

impl<W: Write> Log<W> {
    /// Begins a log.
    #[must_use]
    pub fn new(to: W, metadata: &LogMetadata<'_>) -> Self {
        let mut vantage = json!({ "name": metadata.object, "type": metadata.vantage });
        if let Some(flow) = metadata.flow {
            vantage["flow"] = json!(flow);
        }
        // Times are relative to time zero, whose time of day is in `wall_clock_time` if it is known.
        let mut reference = json!({ "clock_type": "monotonic", "epoch": "unknown" });
        if let Some(began) = metadata.began {
            reference["wall_clock_time"] = json!(began);
        }
        let mut log = Self { to, failed: None };
        log.record(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": metadata.title,
            "description": metadata.description,
            "trace": {
                "title": metadata.object,
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": reference,
                    "protocol_types": [metadata.protocol],
                },
                "vantage_point": vantage,
                "event_schemas": [EVENTS],
            },
        }));
        log
    }

    fn record(&mut self, value: &Value) {
        if self.failed.is_none() {
            // RFC 7464: a record separator, the text, a line feed.
            self.failed = writeln!(self.to, "\u{1e}{value}").err();
        }
    }

    /// Writes an event at `time`; `group`: number of the transfer to which it belongs, if any.
    pub fn event(&mut self, time: Instant, group: Option<u64>, name: &str, data: &Value) {
        let mut event = json!({ "time": millis(time), "name": format!("tcp:{name}"), "data": data });
        if let Some(number) = group {
            event["group_id"] = json!(format!("{number}"));
        }
        self.record(&event);
    }

    /// Ends the log.
    ///
    /// # Errors
    /// The first error of writing it.
    pub fn finish(mut self) -> io::Result<W> {
        match self.failed {
            Some(e) => Err(e),
            None => self.to.flush().map(|()| self.to),
        }
    }
}

/// Milliseconds since time zero.
fn millis(t: Instant) -> f64 {
    t.as_nanos() as f64 / 1e6
}

/// The records of a log: the header, then the events.
///
/// # Errors
/// What is wrong with the first invalid record.
pub fn records(text: &str) -> Result<alloc::vec::Vec<Value>, String> {
    let mut parts = text.split('\u{1e}');
    if parts.next() != Some("") {
        return Err("it does not begin with a record separator".into());
    }
    let each = |part: &str| match part.strip_suffix('\n') {
        Some(json) => serde_json::from_str(json).map_err(|e| format!("{json}: {e}")),
        None => Err(format!("{part}: no line feed behind it")),
    };
    parts.map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn what_is_written_can_be_read() {
        let metadata = LogMetadata {
            title: "a",
            description: "b",
            object: "c",
            protocol: "TCP",
            vantage: "client",
            flow: None,
            began: Some("1970-01-01T00:00:00.000Z"),
        };
        let mut log = Log::new(Vec::new(), &metadata);
        log.event(
            Instant::from_nanos(1_500_000),
            Some(7),
            "packet_sent",
            &json!({ "raw": { "length": 40 } }),
        );
        let text = String::from_utf8(log.finish().unwrap()).unwrap();
        let all = records(&text).unwrap();
        assert_eq!(all[0]["trace"]["event_schemas"], json!([EVENTS]));
        let reference = &all[0]["trace"]["common_fields"]["reference_time"];
        assert_eq!(
            (&reference["epoch"], &reference["wall_clock_time"]),
            (&json!("unknown"), &json!("1970-01-01T00:00:00.000Z"))
        );
        assert_eq!(
            all[1],
            json!({ "time": 1.5, "name": "tcp:packet_sent", "data": { "raw": { "length": 40 } }, "group_id": "7" })
        );
        assert_eq!(all.len(), 2);
        assert!(records(&text[1..]).is_err() && records(&text[..text.len() - 1]).is_err());
    }
}
