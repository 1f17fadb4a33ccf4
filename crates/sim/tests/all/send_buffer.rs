//! The send buffer bounds what is outstanding, not what an application has to send.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::Duration;
use skyhaul_scenario::resolved::{App, Resolved, Start};
use skyhaul_sim::{FlowResult, run};
use skyhaul_tcp::Config;
use skyhaul_trace::Null;

const RTT: f64 = 0.55;
const MSS: u64 = 960;

fn with(send_buffer: u64, app: App) -> Resolved {
    let mut flow = bulk("bulk", 1, "sack", 64, RTT);
    flow.endpoint = Config { send_buffer, ..flow.endpoint };
    flow.start = Start::At(Duration::ZERO);
    flow.app = app;
    scenario(200.0, vec![geo(1300.0, RTT, 1000, 0.0)], vec![flow])
}

fn flow(s: &Resolved) -> FlowResult {
    run(s, 1, Null).expect("a world").flows[0].clone()
}

#[test]
fn a_bulk_transfer_goes_on_beyond_the_send_buffer() {
    for segments in [4, 16, 32] {
        let f = flow(&with(segments * MSS, App::BULK));
        // A window of the size of the buffer per round trip, after a few round trips of slow start.
        let most = 200.0 / RTT * segments as f64;
        assert!(f.segments_acked <= most, "{} of {most}", f.segments_acked);
        assert!(f.segments_acked > 0.96 * most, "{} of {most}", f.segments_acked);
    }
    // A buffer that is no whole number of segments: the rest of it stays empty.
    let f = flow(&with(16 * MSS + 500, App::BULK));
    let whole = flow(&with(16 * MSS, App::BULK));
    assert_eq!(f.segments_acked, whole.segments_acked);
}

#[test]
fn a_page_larger_than_the_send_buffer_is_done_when_all_of_it_is() {
    let f = flow(&with(8 * MSS, App::Pages(Pages { segments: 100, count: Some(2), idle: None })));
    assert_eq!(f.pages.len(), 2);
    assert_eq!(f.segments_acked, 200.0);
    // 1, 2, 4, then 8 per round trip: 3 + ⌈93 / 8⌉ = 15 round trips.
    for page in &f.pages {
        let rounds = page.took.as_secs_f64() / RTT;
        assert!((15.0..16.0).contains(&rounds), "{rounds}");
    }
}
