//! Idle connections cost nothing while others are served.
#![cfg(target_os = "linux")]

mod common;

use common::{Weather, World};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{App, ConnectionHandler, NextStep, Serve};
use skyhaul_net::host::{ConnId, Endpoint, Host, HostConfig};
use std::cell::Cell;
use std::rc::Rc;

/// Reads and forgets, and counts how often it is called.
struct Counting(Rc<Cell<u64>>);

impl ConnectionHandler for Counting {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> NextStep {
        self.0.set(self.0.get() + 1);
        host.discard(now, id);
        if host.conn(id).is_some_and(|c| c.at_end()) {
            NextStep::Close
        } else {
            NextStep::Until(Instant::MAX)
        }
    }
}

#[test]
fn idle_connections_are_not_looked_at() {
    let endpoint = Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"));
    let mut w =
        World::new(Instant::ZERO + Duration::from_millis(5), false, Weather::calm(Duration::from_millis(5)));
    for side in 0..2 {
        let c = HostConfig { record: false, ..w.hosts[side].config().clone() };
        w.hosts[side] = Host::new(c);
    }
    w.hosts[1].listen(80, endpoint.clone()).unwrap();
    let calls: Rc<Cell<u64>> = Rc::default();
    let mut served = Vec::new();
    let mut app = Serve::new(
        |_| {
            served.push(Rc::<Cell<u64>>::default());
            let all = calls.clone();
            all.set(all.get() + 1);
            Counting(served[served.len() - 1].clone())
        },
        Duration::from_millis(100),
        None,
    );
    let ids: Vec<ConnId> = (0..500).map(|_| w.open(false, 80, &endpoint)).collect();
    let (mut rows, mut last) = (0, Duration::ZERO);
    let mut left = 4_000_000;
    while left > 0 || w.hosts[0].conn(ids[7]).unwrap().tcp().unacked() > 0 {
        let data = vec![5; left.min(1 << 16)];
        left -= w.hosts[0].write(w.now, ids[7], &data);
        let _ = app.turn(w.now, &mut w.hosts[1]);
        app.tell_fresh(|_, meter| rows += meter.news().len());
        while w.hosts[0].next_changed().is_some() {}
        w.flush();
        w.step_by(w.now + Duration::from_millis(1));
    }
    // Long after the last data nothing happens any more.
    let end = w.now + Duration::from_secs(60);
    while w.now < end {
        let _ = app.turn(w.now, &mut w.hosts[1]);
        app.tell_fresh(|_, meter| {
            rows += meter.news().len();
            last = last.max(meter.sum().to);
        });
        w.flush();
        w.step_by(w.now + Duration::from_millis(100));
    }
    assert_eq!((app.next_timeout(), last > Duration::ZERO), (Instant::MAX, true), "all meters sleep");
    drop(app);
    assert_eq!((calls.get(), served.len()), (500, 500));
    let mut turns: Vec<u64> = served.iter().map(|c| c.get()).collect();
    turns.sort_unstable();
    assert!(turns[498] <= 4, "{} turns of one that says nothing", turns[498]);
    assert!(turns[499] > 8, "{} turns of the one that does", turns[499]);
    // Only the busy connection has rows, and none for an interval without data.
    assert!(rows > 0 && rows < 100, "{rows} rows");
}
