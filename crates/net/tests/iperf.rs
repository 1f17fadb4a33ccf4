//! The iperf3 server in virtual time: clients that fall silent do not keep it.
#![cfg(target_os = "linux")]

mod common;

use common::{Weather, World};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{App, Iperf};
use skyhaul_net::host::{ConnId, Endpoint};

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz0123456789\0";

fn endpoint() -> Endpoint {
    Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"))
}
/// Runs the server for this many seconds, or until the client's connection is over; returns whether it is.
fn wait(w: &mut World, app: &mut Iperf, id: ConnId, seconds: u64) -> bool {
    let end = w.now + Duration::from_secs(seconds);
    while w.now < end && !w.hosts[0].conn(id).is_some_and(|c| c.is_over()) {
        let _ = app.turn(w.now, &mut w.hosts[1]);
        while w.hosts[0].next_changed().is_some() {}
        w.flush();
        w.step_by(
            app.next_timeout().max(w.now + Duration::from_millis(1)).min(w.now + Duration::from_millis(100)),
        );
    }
    w.hosts[0].conn(id).is_some_and(|c| c.is_over())
}
/// A client that has sent these words, one a second.
fn client(w: &mut World, app: &mut Iperf, said: &[&[u8]]) -> ConnId {
    let id = w.open(false, 5201, &endpoint());
    for words in said {
        wait(w, app, id, 1);
        assert_eq!(w.hosts[0].write(w.now, id, words), words.len());
    }
    id
}

#[test]
fn whoever_falls_silent_is_given_up() {
    let text = br#"{"tcp":true,"parallel":1}"#;
    let parameters = [&(text.len() as u32).to_be_bytes()[..], text].concat();
    for said in [&[][..], &[&COOKIE[..10]], &[COOKIE], &[COOKIE, &parameters]] {
        let mut w = World::new(Instant::ZERO, false, Weather::calm(Duration::from_millis(10)));
        w.hosts[1].listen(5201, endpoint()).unwrap();
        let mut app = Iperf::new("cubic".into(), Duration::from_secs(1), None);
        let id = client(&mut w, &mut app, said);
        assert!(!wait(&mut w, &mut app, id, 25), "{}: too early", said.len());
        assert!(wait(&mut w, &mut app, id, 10), "{}: it holds on", said.len());
        // The next one is served.
        let next = client(&mut w, &mut app, &[COOKIE]);
        wait(&mut w, &mut app, next, 1);
        let mut state = [0; 4];
        assert_eq!((w.hosts[0].read(w.now, next, &mut state), state[0]), (1, 9), "{}", said.len());
    }
}

#[test]
fn a_client_that_vanishes_while_data_should_flow_is_given_up() {
    let text = br#"{"tcp":true,"parallel":1}"#;
    let parameters = [&(text.len() as u32).to_be_bytes()[..], text].concat();
    let mut w = World::new(Instant::ZERO, false, Weather::calm(Duration::from_millis(10)));
    w.hosts[1].listen(5201, endpoint()).unwrap();
    let mut app = Iperf::new("cubic".into(), Duration::from_secs(1), None);
    let control = client(&mut w, &mut app, &[COOKIE, &parameters]);
    let data = client(&mut w, &mut app, &[COOKIE]);
    wait(&mut w, &mut app, data, 1);
    w.hosts[0].write(w.now, data, &[1; 1000]);
    assert!(!wait(&mut w, &mut app, control, 110), "data may pause");
    assert!(wait(&mut w, &mut app, control, 20), "it holds on");
}

#[test]
fn a_test_that_cannot_be_served_is_refused_with_iperf3s_error_of_parameters() {
    let text = br#"{"udp":true,"len":65000}"#;
    let parameters = [&(text.len() as u32).to_be_bytes()[..], text].concat();
    let mut w = World::new(Instant::ZERO, false, Weather::calm(Duration::from_millis(10)));
    w.hosts[1].listen(5201, endpoint()).unwrap();
    let mut app = Iperf::new("cubic".into(), Duration::from_secs(1), None);
    let id = client(&mut w, &mut app, &[COOKIE, &parameters]);
    wait(&mut w, &mut app, id, 1);
    let mut said = [0; 16];
    let n = w.hosts[0].read(w.now, id, &mut said);
    // PARAM_EXCHANGE; then SERVER_ERROR with IERECVPARAMS (iperf_api.h), and no errno.
    assert_eq!(said[..n], [9, 254, 0, 0, 0, 114, 0, 0, 0, 0]);
    assert!(app.take_refused()[0].contains("65000 bytes"));
}
