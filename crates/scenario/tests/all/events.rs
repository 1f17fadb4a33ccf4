//! Changes of links during a run.

use skyhaul_path::Limit;
use skyhaul_scenario::resolved::Change;
use skyhaul_scenario::{Resolved, no_files, resolve_text};

/// Two links of 8 Mbit/s on the path of a flow, with these lines.
fn resolve(more: &str) -> Resolved {
    let link = |name| {
        format!(
            "links.{name}.rate = '8 Mbit/s'\nlinks.{name}.delay = '50 ms'\nlinks.{name}.queue = '1 BDP'\n"
        )
    };
    let text = format!("duration = '10 s'\nflows.x.path = ['a', 'b']\n{}{}{more}", link("a"), link("b"));
    resolve_text("x.toml", &text, &[], &no_files).unwrap_or_else(|e| panic!("{e}"))
}

/// The new limits by link and direction.
fn limits(resolved: &Resolved) -> Vec<(usize, bool, Limit)> {
    let events = resolved.events.iter();
    let limit = |e: &skyhaul_scenario::resolved::Event| match e.change {
        Change::Limit(limit) => Some((e.link, e.forward, limit)),
        _ => None,
    };
    events.filter_map(limit).collect()
}

#[test]
fn a_queue_in_bdp_keeps_its_size_unless_the_event_names_it() {
    let set = |keys: &str| resolve(&format!("event = [{{ at = '1 s', set = {{ {keys} }} }}]"));
    assert_eq!(limits(&set("'links.a.rate' = '4 Mbit/s'")), []);
    // A queue of another link is none of this one.
    let other = set("'links.a.rate' = '4 Mbit/s', 'links.b.queue.limit' = '10 packets'");
    let ten = Limit::Packets(10);
    assert_eq!(limits(&other), [(1, true, ten), (1, false, ten)]);
    // Nor is that of the other direction.
    let reverse = set("'links.a.rate' = '4 Mbit/s', 'links.a.reverse.queue.limit' = '10 packets'");
    assert_eq!(limits(&reverse), [(0, false, ten)]);
    // 4 Mbit/s in 200 ms are 100 kB: 67 packets of 1500 bytes. The reverse direction follows if it has no queue of its own.
    let (both, half) = ("'links.a.rate' = '4 Mbit/s', 'links.a.queue.limit' = '1 BDP'", Limit::Packets(67));
    assert_eq!(limits(&set(both)), [(0, true, half), (0, false, half)]);
    let own =
        resolve(&format!("links.a.reverse.queue = '2 BDP'\nevent = [{{ at = '1 s', set = {{ {both} }} }}]"));
    assert_eq!(limits(&own), [(0, true, half)]);
    let twice = resolve(&format!(
        "[[event]]\nat = '1 s'\nset = {{ 'links.a.reverse.queue.limit' = '10 packets' }}\n\
         [[event]]\nat = '2 s'\nset = {{ {both} }}"
    ));
    assert_eq!(limits(&twice), [(0, false, ten), (0, true, half)]);
}

#[test]
fn an_outage_of_one_direction_reads_back_to_the_same() {
    let down = "event = [{ at = '1 s', set = { 'links.a.up' = false } }]";
    for (own, directions) in [("", &[true, false][..]), ("links.a.reverse.up = true\n", &[true])] {
        let resolved = resolve(&format!("{own}{down}"));
        assert_eq!(resolved.events.iter().map(|e| e.forward).collect::<Vec<_>>(), directions);
        let again = resolve_text("again.toml", &resolved.to_toml(), &[], &no_files).unwrap();
        assert_eq!((&again, again.hash()), (&resolved, resolved.hash()), "{}", resolved.to_toml());
    }
}
