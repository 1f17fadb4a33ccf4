//! Links that deliver packets twice.

use crate::common::resolved;
use skyhaul_sim::run;
use skyhaul_trace::{Event, Memory};

/// Three percent of copies in one direction, none in the other.
const LINK: &str = r#"
    duration = "30 s"
    [links.sat]
    rate = "2 Mbit/s"
    delay = "100 ms"
    queue = "40 packets"
    duplicate = 0.03
    reverse = { duplicate = 0 }
"#;

#[test]
fn every_copy_is_counted_once_everywhere() {
    for flow in [
        "cc = \"cubic\"",
        "cc = \"peach\"",
        "handshake = true\ncc = \"cubic\"",
        "transport = \"udp\"\napp = { kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"1000 B\" }",
    ] {
        let text = format!("{LINK}[flows.a]\npath = [\"sat\"]\n{flow}\n");
        let scenario = resolved(&text);
        let mut memory = Memory::default();
        let result = run(&scenario, 1, &mut memory).expect("a world");
        let [forward, reverse] = &result.links[..] else { panic!("one link") };
        let copies: u64 = forward.classes.iter().map(|c| c.duplicated).sum();
        let delivered: u64 = forward.classes.iter().map(|c| c.delivered).sum();
        let share = copies as f64 / delivered as f64;
        // Five standard deviations.
        let tolerance = 5.0 * (0.03 * 0.97 / delivered as f64).sqrt();
        assert!((share - 0.03).abs() < tolerance, "{flow}: {copies} of {delivered}");
        assert_eq!(reverse.classes.iter().map(|c| c.duplicated).sum::<u64>(), 0, "{flow}");
        let count =
            |wanted: &dyn Fn(&Event) -> bool| memory.events.iter().filter(|(_, e)| wanted(e)).count() as u64;
        assert_eq!(count(&|e| matches!(e, Event::Duplicated { link: 0, .. })), copies, "{flow}");
        assert_eq!(count(&|e| matches!(e, Event::Duplicated { .. })), copies, "{flow}");
        // The end of the path gets what the last link delivers, copies included.
        let backward: u64 = reverse.classes.iter().map(|c| c.delivered).sum();
        let arrived = count(&|e| matches!(e, Event::Delivered { .. } | Event::Discarded { .. }));
        assert_eq!(arrived, delivered + copies + backward, "{flow}");
    }
}

#[test]
fn a_transfer_behind_copies_is_the_same_stream() {
    let text = format!("{LINK}[flows.a]\npath = [\"sat\"]\ncc = \"cubic\"\nhandshake = true\n");
    let with = run(&resolved(&text), 1, skyhaul_trace::Null).expect("a world");
    let without =
        run(&resolved(&text.replace("duplicate = 0.03", "")), 1, skyhaul_trace::Null).expect("a world");
    let (a, b) = (&with.flows[0], &without.flows[0]);
    // A copy is answered with a duplicate acknowledgement that DSACK explains (RFC 2883), so the window stays.
    assert!(a.goodput > 0.95 * b.goodput, "{} of {}", a.goodput, b.goodput);
}
