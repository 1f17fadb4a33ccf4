//! Controls that the caller provides.

use crate::common;

use common::s0;
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::Duration;
use skyhaul_cc::alg::gaimd::{self, Gaimd};
use skyhaul_cc::user::{self, OptionValue, Request};
use skyhaul_cc::{Ack, Config, CongestionControl, Controls, Cx, Policy, RecoveryMode, Signal, Start, Window};
use skyhaul_scenario::resolved::{App, Resolved};
use skyhaul_sim::{BuildError, RunError, Sim, check_controls, run, run_with};
use skyhaul_trace::{Digest, Null};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn controls() -> Controls {
    let mut controls = Controls::default();
    controls.provide("mine", |request: &Request<'_>| {
        let beta = match request.options.0.get("beta") {
            Some(OptionValue::Real(beta)) => *beta,
            _ => 0.875,
        };
        Ok(Box::new(Gaimd::new(&gaimd::Config::friendly(beta), request.rules)) as _)
    });
    controls
}

fn lossy(cc: &str) -> Resolved {
    s0(5, cc, 5e-3, 60.0)
}

#[test]
fn a_provided_control_runs_like_a_built_in_one() {
    let built_in = run(&lossy("gaimd"), 7, Digest::default()).expect("a run");
    let own = run_with(&lossy("user:mine"), 7, Digest::default(), &controls()).expect("a run");
    assert_eq!(own, built_in);
    // With a handshake, and a connection per page.
    let pages = |cc| {
        let mut s = lossy(cc);
        s.flows[0].app = App::Pages(Pages { segments: 40, count: None, idle: None });
        s.flows[0].handshake = true;
        s.flows[0].known_rtt = None;
        s
    };
    let built_in = run(&pages("gaimd"), 7, Digest::default()).expect("a run");
    assert_eq!(run_with(&pages("user:mine"), 7, Digest::default(), &controls()).expect("a run"), built_in);
}

#[test]
fn its_options_reach_it() {
    let mut s = lossy("user:mine");
    let Config::User(own) = &mut s.flows[0].cc else { panic!("a user's own") };
    own.options.0.insert("beta".into(), OptionValue::Real(0.5));
    let mut same = lossy("gaimd");
    same.flows[0].cc = Config::Gaimd(gaimd::Config::friendly(0.5));
    let (own, built_in) =
        (run_with(&s, 7, Null, &controls()).expect("a run"), run(&same, 7, Null).expect("a run"));
    assert_eq!(own, built_in);
    assert_ne!(own, run_with(&lossy("user:mine"), 7, Null, &controls()).expect("a run"));
}

#[test]
fn threads_do_not_matter() {
    let (s, controls) = (lossy("user:mine"), controls());
    let one = || run_with(&s, 3, Digest::default(), &controls).expect("a run").digest;
    let here = one();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..3).map(|_| scope.spawn(one)).collect();
        all.into_iter().for_each(|h| assert_eq!(h.join().expect("a digest"), here));
    });
}

#[test]
fn a_control_that_nobody_provides_is_refused_before_the_run() {
    let s = lossy("user:yours");
    for controls in [Controls::default(), controls()] {
        let e = Sim::with_controls(&s, 1, Null, &controls).expect_err("nobody has it");
        assert!(matches!(&e, BuildError::Control { flow, .. } if flow == "bulk"), "{e}");
        let (words, known) = (e.to_string(), controls.names().next().unwrap_or("none").to_owned());
        for part in
            ["flows.bulk.cc", "\"yours\"", &format!("known: {known}"), "controls={", "skyhaul_cc::Controls"]
        {
            assert!(words.contains(part), "{words}");
        }
        assert_eq!(check_controls(&s, &controls), Err(e));
    }
    assert!(run(&s, 1, Null).is_err());
    assert_eq!(check_controls(&lossy("user:mine"), &controls()), Ok(()));
}

/// Reno, until it has had enough.
#[derive(Debug)]
struct Fragile {
    acks: u32,
    own_words: bool,
}

impl CongestionControl for Fragile {
    fn window(&self) -> Window {
        Window { cwnd: 4.0, ssthresh: 4.0 }
    }
    fn on_start(&mut self, _: &mut Cx<'_>, _: &Start) {}
    fn on_ack(&mut self, _: &mut Cx<'_>, _: &Ack) {
        self.acks += 1;
        if self.acks == 50 && self.own_words {
            let message = "fifty are enough".to_owned();
            std::panic::panic_any(user::Failed { message, detail: Some("more".into()), source: None });
        }
        assert!(self.acks < 50, "fifty acknowledgements");
    }
    fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {}
    fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {}
}

#[test]
fn a_control_that_fails_ends_the_run_with_its_words_and_the_time() {
    for (own_words, words) in
        [(true, "fifty are enough (at "), (false, "broke an invariant: fifty acknowledgements (at ")]
    {
        let mut controls = Controls::default();
        controls.provide("fragile", move |_: &Request<'_>| Ok(Box::new(Fragile { acks: 0, own_words }) as _));
        let e = run_with(&s0(1, "user:fragile", 0.0, 60.0), 1, Null, &controls).expect_err(words);
        let RunError::Failed(failure) = &e else { panic!("{e}") };
        // 4 segments per RTT of 0.55 s.
        assert!(failure.at.as_secs_f64() > 6.0 && failure.at.as_secs_f64() < 8.0, "{e}");
        assert!(e.to_string().contains(words) && e.to_string().ends_with("s of simulated time)"), "{e}");
        assert_eq!(failure.detail.is_some(), own_words);
    }
    let mut controls = Controls::default();
    controls.provide("none", |_: &Request<'_>| Err("not today".into()));
    let e = run_with(&s0(1, "user:none", 0.0, 60.0), 1, Null, &controls).expect_err("not made").to_string();
    assert!(e.contains("flow bulk[0]") && e.contains("not today"), "{e}");
}

/// A provider that panics when it is asked about options.
struct Rude;

impl user::Factory for Rude {
    fn build(&self, _: &Request<'_>) -> Result<Box<dyn CongestionControl>, user::Error> {
        unreachable!("its options were not accepted")
    }
    fn check(&self, _: &user::Options) -> Result<(), user::Error> {
        panic!("who\nasks?")
    }
}

#[test]
fn a_panic_before_the_run_is_an_error_in_one_line() {
    let mut controls = Controls::default();
    controls.provide("rude", Rude);
    let s = s0(1, "user:rude", 0.0, 60.0);
    let e = Sim::with_controls(&s, 1, Null, &controls).expect_err("it panics");
    assert!(matches!(&e, BuildError::Control { flow, .. } if flow == "bulk"), "{e}");
    assert!(e.to_string().contains("who asks?"), "{e}");
    assert_eq!(check_controls(&s, &controls), Err(e));
    assert!(matches!(run_with(&s, 1, Null, &controls), Err(RunError::Build(_))));
}

#[test]
fn there_is_one_instance_per_connection() {
    for handshake in [false, true] {
        let made = Arc::new(AtomicUsize::new(0));
        let mut controls = Controls::default();
        let count = made.clone();
        controls.provide("mine", move |request: &Request<'_>| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Gaimd::new(&gaimd::Config::default(), request.rules)) as _)
        });
        let mut s = lossy("user:mine");
        s.duration = Duration::from_secs(20);
        s.flows[0].handshake = handshake;
        s.flows[0].known_rtt = s.flows[0].known_rtt.filter(|_| !handshake);
        run_with(&s, 1, Null, &controls).expect("a run");
        assert_eq!(made.load(Ordering::Relaxed), 5);
    }
}

/// A control that repairs losses without SACK.
#[derive(Debug)]
struct Plain(Policy);

impl CongestionControl for Plain {
    fn window(&self) -> Window {
        Window { cwnd: 4.0, ssthresh: 4.0 }
    }
    fn policy(&self) -> Policy {
        self.0
    }
    fn on_ack(&mut self, _: &mut Cx<'_>, _: &Ack) {}
    fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {}
    fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {}
}

#[test]
fn a_policy_that_does_not_fit_the_endpoint_is_refused_as_that_of_a_built_in_control() {
    use skyhaul_tcp::config::LossDetection::{DupAcks, Rack};
    for (recovery, detection, sack, words) in [
        (
            RecoveryMode::NewReno,
            Rack,
            None,
            "flows.bulk.endpoint.loss-detection: \"rack\" needs a congestion control",
        ),
        (RecoveryMode::Sack, Rack, Some(false), "flows.bulk.endpoint.loss-detection: \"rack\" needs SACK"),
        (
            RecoveryMode::Sack,
            DupAcks,
            Some(false),
            "flows.bulk.endpoint.sack: false, but cc = \"user:plain\"",
        ),
        (RecoveryMode::Sack, Rack, None, ""),
        (RecoveryMode::NewReno, DupAcks, Some(false), ""),
    ] {
        let mut controls = Controls::default();
        let policy = Policy { recovery, ..Policy::default() };
        controls.provide("plain", move |_: &Request<'_>| Ok(Box::new(Plain(policy)) as _));
        let mut s = s0(1, "user:plain", 0.0, 10.0);
        (s.flows[0].endpoint.loss_detection, s.flows[0].endpoint.sack) = (detection, sack);
        match run_with(&s, 1, Null, &controls) {
            Ok(_) => assert_eq!(words, ""),
            Err(e) => assert!(!words.is_empty() && e.to_string().contains(words), "{e}"),
        }
    }
}
