//! Marks of queues (ECN) in what a run records: counts, events, and the series over time.

use crate::text::resolved;
use skyhaul_sim::{RunResult, run};
use skyhaul_trace::{Event, Memory};

/// A transfer of 5000 segments, 20 s and more, over two links, the first of which marks.
fn marked(events: &mut Memory) -> RunResult {
    let text = r#"
schema = 1
duration = "60 s"
[record]
sample = "1 s"
series = ["marked"]
[links.narrow]
packet = "1000 B"
rate = "2 Mbit/s"
delay = "50 ms"
queue = { kind = "red", limit = "100 packets" }
[links.wide]
rate = "20 Mbit/s"
delay = "10 ms"
queue = "100 packets"
[flows.bulk]
path = ["narrow", "wide"]
cc = "newreno"
endpoint = { preset = "rfc", mss = "960 B", ecn = "ask" }
rwnd = "100 KiB"
app = { kind = "pages", segments = 5000, count = 1 }
"#;
    run(&resolved(text), 1, events).expect("a run")
}

#[test]
fn each_mark_is_recorded_once_and_of_the_link_that_set_it() {
    let mut memory = Memory::default();
    let r = marked(&mut memory);
    let index = |name: &str| r.links.iter().position(|l| l.name == name && l.forward).expect("a link");
    let (narrow, wide) = (index("narrow"), index("wide"));
    let total = |at: usize| r.links[at].classes.iter().map(|c| c.marked).sum::<u64>();
    assert!(total(narrow) > 3 && total(wide) == 0, "{} {}", total(narrow), total(wide));
    let mut marks = vec![0; r.links.len()];
    for (_, event) in &memory.events {
        if let Event::Marked { link, flow, packet } = event {
            assert_eq!((*flow, packet.size), (0, 1000));
            marks[*link as usize] += 1;
        }
    }
    // Nothing is on its way at the end.
    assert_eq!((r.flows[0].pages.len(), marks[narrow]), (1, total(narrow)), "{marks:?}");
    assert_eq!(marks.iter().sum::<u64>(), marks[narrow], "{marks:?}");
    let series: Vec<f64> = r.series.links.of(narrow as u32, "marked").map(|(_, v)| v).collect();
    assert!(series.windows(2).all(|w| w[0] <= w[1]), "{series:?}");
    assert_eq!(series.last().map(|n| *n as u64), Some(total(narrow)));
    assert!(r.series.links.of(wide as u32, "marked").all(|(_, v)| v == 0.0));
    assert!(r.flows[0].cuts.marked > 0 && r.flows[0].retransmissions == 0);
}
