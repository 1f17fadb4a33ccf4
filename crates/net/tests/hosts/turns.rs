//! Clients take turns where the outlet is limited.

use super::common::{Weather, World, addresses};
use super::{endpoint, ms};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::host::{ConnId, Host, HostConfig, Merge, Outlet};
use std::net::{IpAddr, SocketAddr};

/// A link of 12 Mbit/s: a packet of 1500 bytes each millisecond. At most two packets wait.
struct Link {
    free_at: Instant,
    now: Instant,
    packets: Vec<Vec<u8>>,
}

impl Outlet for Link {
    fn allowance(&self) -> usize {
        if self.free_at <= self.now + ms(2) { 2 } else { 0 }
    }
    fn send<E>(
        &mut self,
        most: usize,
        _: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut packet = vec![0; most];
        let n = write(&mut packet)?;
        packet.truncate(n);
        // 2/3 of a microsecond for each byte.
        self.free_at = self.free_at.max(self.now) + Duration::from_micros(n as u64 * 2 / 3);
        self.packets.push(packet);
        Ok(())
    }
}

/// Ten connections of one client and one connection of another client send through a host with a limited link.
#[test]
fn ten_connections_of_a_client_get_no_more_than_one_of_another() {
    let mut w = World::new(Instant::ZERO + Duration::from_secs(5), false, Weather::calm(ms(100)));
    let config =
        HostConfig { transparent: true, by_client: true, record: false, ..w.hosts[0].config().clone() };
    w.hosts[0] = Host::new(config);
    let mut e = endpoint("newreno");
    e.tcp.receive_autotuning = false;
    w.hosts[1].listen(80, e.clone()).expect("listens");
    let server = SocketAddr::new(addresses(false)[1], 80);
    let client = |n: u8| IpAddr::from([10, 1, 0, n]);
    let ids: Vec<ConnId> = (0..11)
        .map(|n| {
            let from = SocketAddr::new(client(if n == 10 { 3 } else { 2 }), 1000 + n);
            w.hosts[0].connect(w.now, from, server, &e).expect("opens")
        })
        .collect();
    let mut link = Link { free_at: w.now, now: w.now, packets: Vec::new() };
    let end = w.now + Duration::from_secs(60);
    let mut arrived = Vec::new();
    while w.now < end {
        link.now = w.now;
        let host = &mut w.hosts[0];
        host.handle_timeout(w.now, &mut link);
        arrived.drain(..).for_each(|p: Vec<u8>| host.arrive(w.now, &p, &mut link));
        for id in &ids {
            while host.write(w.now, *id, &[7; 10_000]) > 0 {}
        }
        host.flush(w.now, &mut link);
        let packets = std::mem::take(&mut link.packets);
        w.send(0, packets);
        while let Some(id) = w.hosts[1].next_changed() {
            let now = w.now;
            w.hosts[1].sink(now, id);
        }
        w.now += Duration::from_micros(500);
        let now = w.now;
        let [to_host, to_server] = w.due();
        arrived = to_host;
        to_server.iter().for_each(|p| w.inject(1, p));
        let mut answers = Vec::new();
        w.hosts[1].handle_timeout(now, &mut |p: &[u8]| answers.push(p.to_vec()));
        w.send(1, answers);
    }
    let acknowledged = |id: &ConnId| {
        let c = w.hosts[0].conn(*id).expect("open");
        c.bytes_written() - c.tcp().unacked()
    };
    let all: u64 = ids.iter().map(acknowledged).sum();
    let share = acknowledged(&ids[10]) as f64 / all as f64;
    assert!((0.45..0.55).contains(&share), "{share}");
    // 60 s of 1448 bytes each millisecond, less the beginning.
    assert!(all > 70_000_000, "{all}");
}
