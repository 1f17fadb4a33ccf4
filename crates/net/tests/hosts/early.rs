//! Data in SYNs between two gateways: what it saves, and that nothing is delivered twice, whatever the path does.

use super::common::{Weather, World, addresses};
use super::ms;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_net::host::{Admission, ConnId, Cookie, Endpoint, Host, HostConfig, Transparent};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

/// As gateways configure it: the offer of receiver rates and the gateway's number do not both fit into a SYN.
fn endpoint() -> Endpoint {
    let mut e = super::endpoint("newreno");
    e.tcp.receiver_rate = false;
    e
}

/// The number of the far gateway.
const FAR: NonZeroU32 = NonZeroU32::new(2).expect("not zero");

/// Two gateways. The far one reads requests and answers each with as much again.
struct Gateways {
    w: World,
    v6: bool,
    /// By the number that a request begins with: how often it has arrived in full.
    delivered: BTreeMap<u64, u32>,
    reading: BTreeMap<ConnId, Vec<u8>>,
    /// When a part of a request arrived last, and one of an answer.
    arrived: Instant,
    answered: Instant,
}

fn request(number: u64, len: usize) -> Vec<u8> {
    let mut all = number.to_be_bytes().to_vec();
    all.extend((8..len).map(|n| (n as u64 + number) as u8));
    all
}

impl Gateways {
    fn new(v6: bool, weather: Weather) -> Self {
        let mut w = World::new(Instant::ZERO + Duration::from_secs(5), v6, weather);
        for (n, host) in w.hosts.iter_mut().enumerate() {
            let gateway = NonZeroU32::new(n as u32 + 1);
            let config = HostConfig {
                transparent: true,
                gateway,
                early: Some(Arc::default()),
                record: true,
                ..host.config().clone()
            };
            *host = Host::new(config);
        }
        w.hosts[1].listen_elsewhere(Some((endpoint(), Admission::WhenAdmitted)));
        Self {
            w,
            v6,
            delivered: BTreeMap::new(),
            reading: BTreeMap::new(),
            arrived: Instant::ZERO,
            answered: Instant::ZERO,
        }
    }

    /// The far gateway ends, and is started again: it knows nothing, and has another number and another secret.
    fn restart(&mut self) {
        let config = HostConfig {
            gateway: NonZeroU32::new(77),
            secret: skyhaul_net::host::Secret::fixed([77; 16]),
            early: Some(Arc::default()),
            ..self.w.hosts[1].config().clone()
        };
        self.w.hosts[1] = Host::new(config);
        self.w.hosts[1].listen_elsewhere(Some((endpoint(), Admission::WhenAdmitted)));
        self.reading.clear();
    }

    /// Opens a connection whose request is written at once.
    fn ask(&mut self, port: u16, cookie: Option<Cookie>, request: &[u8]) -> ConnId {
        let [a, b] = addresses(self.v6);
        let (from, to) = (SocketAddr::new(a, port), SocketAddr::new(b, 80));
        let (now, e) = (self.w.now, endpoint());
        let id = match cookie {
            Some(cookie) => self.w.hosts[0].connect_early(now, from, to, &e, (FAR, cookie)),
            None => self.w.hosts[0].connect(now, from, to, &e),
        };
        let id = id.expect("opens");
        assert_eq!(self.w.hosts[0].write(now, id, request), request.len());
        self.w.hosts[0].shutdown(now, id);
        self.w.flush();
        id
    }

    /// The turns of the far gateway's application, as long as there is news.
    fn serve(&mut self) {
        self.turn();
        while self.w.hosts[1].has_news() {
            self.turn();
        }
    }
    fn turn(&mut self) {
        let (now, host) = (self.w.now, &mut self.w.hosts[1]);
        while let Some(asked) = host.next_asked() {
            assert!(host.admit(asked.id, None, 0));
        }
        while host.next_withdrawn().is_some() {}
        while let Some(id) = host.next_changed() {
            let all = self.reading.entry(id).or_default();
            let mut buf = [0; 4096];
            loop {
                let n = host.read(now, id, &mut buf);
                if n == 0 {
                    break;
                }
                all.extend_from_slice(&buf[..n]);
                // The answer leaves at once: it does not wait for the end of the request.
                host.write(now, id, &buf[..n]);
                self.arrived = now;
            }
            let conn = host.conn(id).expect("is there");
            let over = conn.failure().is_some();
            if conn.at_end() || over {
                if let Some(number) = all.first_chunk().filter(|_| !over) {
                    let number = u64::from_be_bytes(*number);
                    assert!(*all == request(number, all.len()), "request {number} is as it was sent");
                    *self.delivered.entry(number).or_default() += 1;
                }
                self.reading.remove(&id);
                host.release(now, id);
            }
        }
        self.w.flush();
    }

    /// Runs until the answer has arrived in full; returns it, and releases the connection.
    fn answer(&mut self, id: ConnId) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            self.serve();
            let (now, host) = (self.w.now, &mut self.w.hosts[0]);
            let mut buf = [0; 4096];
            loop {
                let n = host.read(now, id, &mut buf);
                if n == 0 {
                    break;
                }
                all.extend_from_slice(&buf[..n]);
                self.answered = now;
            }
            let conn = host.conn(id).expect("not released");
            if conn.at_end() || conn.failure().is_some() {
                return all;
            }
            assert!(self.w.step(), "something happens");
        }
    }
    fn release(&mut self, id: ConnId) {
        self.w.hosts[0].release(self.w.now, id);
        self.w.flush();
    }
    fn exchange(&mut self, port: u16, cookie: Option<Cookie>, request: &[u8]) -> (Vec<u8>, ConnId) {
        let id = self.ask(port, cookie, request);
        (self.answer(id), id)
    }
    /// A first connection brings a cookie.
    fn meet(&mut self) -> Cookie {
        let (_, id) = self.exchange(999, None, &request(0, 20));
        let conn = self.w.hosts[0].conn(id).expect("not released");
        assert_eq!(conn.peer_gateway(), Some(FAR));
        let cookie = conn.peer_cookie().expect("given");
        self.release(id);
        cookie
    }
}

#[test]
fn a_request_to_a_known_gateway_takes_one_round_trip_less() {
    for v6 in [false, true] {
        let mut g = Gateways::new(v6, Weather::calm(ms(250)));
        let cookie = g.meet();
        for (len, early, arrives, answered) in
            [(300, false, 750, 1000), (300, true, 250, 500), (1360, true, 250, 500), (3000, true, 750, 1000)]
        {
            let began = g.w.now;
            let asked = request(1, len);
            let (answer, id) =
                g.exchange(1000 + len as u16 + u16::from(early), early.then_some(cookie), &asked);
            assert!(answer == asked);
            assert_eq!(
                (g.arrived - began, g.answered - began),
                (ms(arrives), ms(answered)),
                "{len} bytes, {early}"
            );
            let conn = g.w.hosts[0].conn(id).expect("not released");
            assert_eq!((conn.early().sent > 0, conn.early().taken), (early, conn.early().sent));
            if let Err(d) = conn.journal().expect("recorded").replay() {
                panic!("step {}: {:?} instead of {:?}", d.step, d.replayed, d.recorded);
            }
            g.release(id);
        }
    }
}

#[test]
fn data_of_a_syn_waits_until_the_connection_is_admitted_and_a_refusal_drops_it() {
    let mut g = Gateways::new(false, Weather::calm(ms(50)));
    let cookie = g.meet();
    let id = g.ask(1000, Some(cookie), &request(5, 100));
    for _ in 0..2 {
        g.w.step();
    }
    let asked = g.w.hosts[1].next_asked().expect("asks");
    assert_eq!((g.w.hosts[1].next_changed(), asked.gateway), (None, NonZeroU32::new(1)));
    g.w.hosts[1].refuse(asked.id);
    assert!(g.answer(id).is_empty());
    let failure = g.w.hosts[0].conn(id).and_then(|c| c.failure());
    assert_eq!(failure, Some(skyhaul_net::host::Failure::Refused));
    assert!(!g.delivered.contains_key(&5));
}

#[test]
fn a_cookie_is_good_for_its_client_and_gateway_and_for_a_while() {
    let mut g = Gateways::new(false, Weather::calm(ms(50)));
    let cookie = g.meet();
    let taken = |g: &mut Gateways, port: u16, cookie: Cookie| {
        let (answer, id) = g.exchange(port, Some(cookie), &request(7, 100));
        // In any case the request arrives.
        assert_eq!(answer, request(7, 100));
        let taken = g.w.hosts[0].conn(id).expect("not released").early().taken;
        g.release(id);
        taken > 0
    };
    assert!(taken(&mut g, 1000, cookie));
    let mut forged = cookie;
    forged[3] ^= 1;
    assert!(!taken(&mut g, 1001, forged));
    // A cookie of another client: the gateway stands in for all clients.
    let [_, b] = addresses(false);
    let (now, e) = (g.w.now, endpoint());
    let other = SocketAddr::from(([10, 84, 0, 9], 1002));
    let id =
        g.w.hosts[0].connect_early(now, other, SocketAddr::new(b, 80), &e, (FAR, cookie)).expect("opens");
    g.w.hosts[0].write(now, id, &request(8, 100));
    g.w.hosts[0].shutdown(now, id);
    g.w.flush();
    assert_eq!(g.answer(id), request(8, 100));
    assert_eq!(g.w.hosts[0].conn(id).expect("not released").early().taken, 0);
    g.release(id);
    // It expires after ten to twenty minutes.
    g.w.now += Duration::from_secs(590);
    assert!(taken(&mut g, 1003, cookie));
    g.w.now += Duration::from_secs(615);
    assert!(!taken(&mut g, 1004, cookie));
    assert_eq!(g.w.hosts[1].counts().early_refused, 3);
}

#[test]
fn no_request_is_delivered_twice() {
    for v6 in [false, true] {
        let weather = Weather { loss: 0.1, duplicate: 0.1, ..Weather::stormy(ms(20)) };
        let mut g = Gateways::new(v6, weather);
        let mut cookie = g.meet();
        let mut rng = Rng::stream(3, "copies");
        // A box on the way keeps a copy of every SYN with data, and sends copies long after.
        let kept: Rc<RefCell<VecDeque<Vec<u8>>>> = Rc::default();
        let keeps = kept.clone();
        let at = if v6 { 40 } else { 20 };
        g.w.boxes[0] = Some(Box::new(move |_, p, _| {
            if p[at + 13] & 0x12 == 2 && p.len() > at + 4 * usize::from(p[at + 12] >> 4) {
                keeps.borrow_mut().push_back(p.clone());
            }
            true
        }));
        let mut taken = 0;
        for n in 1..=400u64 {
            let asked = request(n, 8 + rng.below(2500) as usize);
            let (answer, id) = g.exchange(1000 + n as u16, Some(cookie), &asked);
            assert!(answer == asked, "request {n}");
            let conn = g.w.hosts[0].conn(id).expect("not released");
            taken += u32::from(conn.early().taken > 0);
            cookie = conn.peer_cookie().unwrap_or(cookie);
            g.release(id);
            while rng.below(3) == 0 {
                let copy = {
                    let kept = kept.borrow();
                    if kept.is_empty() { break } else { kept[rng.below(kept.len() as u64) as usize].clone() }
                };
                g.w.inject(1, &copy);
                g.serve();
            }
            if rng.below(20) == 0 {
                // Long enough for everything but the serial numbers to be forgotten.
                let until = g.w.now + Duration::from_secs(70);
                while g.w.now < until {
                    g.w.step_by(until);
                    g.serve();
                }
            }
        }
        let until = g.w.now + Duration::from_secs(300);
        for copy in kept.borrow().iter() {
            g.w.inject(1, copy);
        }
        while g.w.now < until {
            g.w.step_by(until);
            g.serve();
        }
        assert!(taken > 200, "{taken} SYNs brought their data");
        assert_eq!(g.delivered.len(), 401);
        assert!(g.delivered.values().all(|times| *times == 1), "{:?}", g.delivered);
        assert!(g.w.hosts[1].counts().early_repeated > 100, "copies were recognised");
    }
}

#[test]
fn what_another_gateway_may_have_delivered_is_not_sent_again() {
    // Repeated or not, and whether the gateway was started again in between.
    for (repeated, restarted) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut g = Gateways::new(false, Weather::calm(ms(50)));
        let cookie = g.meet();
        let mut lost = repeated;
        g.w.boxes[1] = Some(Box::new(move |_, _, _| !core::mem::take(&mut lost)));
        if restarted && !repeated {
            g.restart();
        }
        let id = g.ask(1000, Some(cookie), &request(5, 100));
        if repeated {
            // The request is delivered, and the answer to the SYN is lost.
            let began = g.w.now;
            while g.arrived < began {
                g.w.step_by(g.w.now + ms(10));
                g.serve();
            }
            if restarted {
                g.restart();
            }
        }
        let answer = g.answer(id);
        let failure = g.w.hosts[0].conn(id).and_then(|c| c.failure());
        if repeated && restarted {
            assert_eq!((answer.len(), failure), (0, Some(skyhaul_net::host::Failure::Reset)));
        } else {
            assert_eq!((answer, failure), (request(5, 100), None));
        }
        g.release(id);
        let until = g.w.now + Duration::from_secs(5);
        while g.w.now < until {
            g.w.step_by(until);
            g.serve();
        }
        assert!(g.delivered.get(&5).is_none_or(|times| *times == 1), "{repeated} {restarted}");
    }
}
