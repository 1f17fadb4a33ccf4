//! The server's results of a test, in the format of iperf3.

use super::parameters::Direction;
use super::test::{Stream, Test};
use serde_json::{Value, json};

/// Our results. `control_name` is the name of our congestion control.
pub(super) fn of(test: &Test, control_name: &str) -> Value {
    let streams = test.streams.iter().enumerate().map(|(i, s)| {
        let mut stream = match s {
            Stream::Tcp { meter, sends, .. } => {
                let sum = meter.sum();
                json!({
                    "bytes": sum.bytes, "retransmits": if *sends { sum.retransmissions as i64 } else { -1 },
                    "jitter": 0, "errors": 0, "packets": 0, "end_time": sum.to.as_secs_f64(),
                })
            }
            Stream::Udp(d) => json!({
                "bytes": d.bytes, "retransmits": -1, "jitter": d.jitter.as_secs_f64(), "errors": d.lost,
                "packets": d.packets, "end_time": d.time.as_secs_f64(),
            }),
        };
        if let Some(stream) = stream.as_object_mut() {
            // iperf3 numbers its streams 1, 3, 4, 5 and so on.
            stream.insert("id".into(), json!(if i == 0 { 1 } else { i + 2 }));
            let nothing = ["omitted_errors", "omitted_packets", "start_time"];
            stream.extend(nothing.map(|key| (key.into(), json!(0))));
        }
        stream
    });
    let knows_retransmits = test.parameters.direction != Direction::In && !test.parameters.udp;
    json!({
        "cpu_util_total": 0.0,
        "cpu_util_user": 0.0,
        "cpu_util_system": 0.0,
        "sender_has_retransmits": if knows_retransmits { 1 } else { -1 },
        "congestion_used": control_name,
        "streams": streams.collect::<Vec<_>>(),
    })
}
