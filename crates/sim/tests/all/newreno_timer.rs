//! The two variants of NewReno's retransmission timer (RFC 6582 §4).

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::Duration;
use skyhaul_path::error::{Scope, list};
use skyhaul_scenario::resolved::{App, Start};
use skyhaul_sim::{FlowResult, run};
use skyhaul_trace::Null;

const RTT: f64 = 0.55;

/// 300 segments, of which 30 in a row are lost once the window is 64.
fn page(impatient: bool) -> FlowResult {
    let mut link = geo(1300.0, RTT, 1000, 0.0);
    link.forward.error = list::Config { indices: (150..180).collect(), class: Scope::HighPriority }.into();
    let mut flow = bulk("bulk", 1, "newreno", 64, RTT);
    flow.start = Start::At(Duration::ZERO);
    flow.app = App::Pages(Pages { segments: 300, count: Some(1), idle: None });
    flow.endpoint.rto.restart_on_first_partial_only = impatient;
    run(&scenario(60.0, vec![link], vec![flow]), 1, Null).expect("a world").flows[0].clone()
}

#[test]
fn slow_but_steady_repairs_one_loss_per_round_trip() {
    let f = page(false);
    assert_eq!((f.timeouts, f.recoveries, f.retransmissions), (0, 1, 30));
    // 30 round trips for the losses, and not many more for the rest.
    let took = f.pages[0].took.as_secs_f64() / RTT;
    assert!((36.0..48.0).contains(&took), "{took}");
}

#[test]
fn impatient_gives_up_after_an_rto_and_starts_over() {
    let f = page(true);
    // The timer runs from the first partial acknowledgement on: RTOmin 1 s, two round trips, and then slow start.
    assert_eq!((f.timeouts, f.recoveries), (1, 1));
    let took = f.pages[0].took.as_secs_f64() / RTT;
    assert!((14.0..24.0).contains(&took), "{took}");
}
