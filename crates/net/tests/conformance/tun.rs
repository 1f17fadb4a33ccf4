//! Our host in real time, on an interface of its own; a kernel forwards between it and the scripted peer.

use super::ours::{Ours, host};
use super::script_side::{ScriptSide, space};
use skyhaul_base::Instant;
use skyhaul_net::app::{App, AppStatus};
use skyhaul_net::driver::Driver;
use skyhaul_net::host::{Host, Secret};
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::wait::Waker;
use skyhaul_testkit::conformance::packet::{Damage, Packet};
use skyhaul_testkit::conformance::target::{TcpInfo, addresses};
use skyhaul_testkit::conformance::{Answer, Call, Conditions, SocketStatus, Target, TargetKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

type Order = Box<dyn FnOnce(Instant, &mut Ours, &mut Host) + Send>;

/// Carries out orders of the test between packets.
struct Puppet {
    ours: Ours,
    orders: Receiver<Order>,
    over: bool,
}

impl App for Puppet {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        self.ours.hear(host);
        loop {
            match self.orders.try_recv() {
                Ok(order) => order(now, &mut self.ours, host),
                Err(std::sync::mpsc::TryRecvError::Empty) => break,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                    self.over = true;
                    break;
                }
            }
        }
        if self.over { AppStatus::Done } else { AppStatus::Waiting }
    }
    fn next_timeout(&self) -> Instant {
        Instant::MAX
    }
    fn stop(&mut self, _: Instant, _: &mut Host) {}
}

pub(crate) struct OverTun {
    side: ScriptSide,
    orders: Option<Sender<Order>>,
    waker: Waker,
    driver: Option<JoinHandle<Result<(), String>>>,
}

impl OverTun {
    /// With `offload`, the interface takes and gives super-packets.
    pub(crate) fn new(conditions: &Conditions, offload: bool) -> Result<Self, String> {
        let ns = space()?;
        ns.enter().map_err(|e| e.to_string())?;
        let [_, peer] = addresses(conditions.v6);
        let (prefix, ours_side, peer_side): (u8, IpAddr, IpAddr) = if conditions.v6 {
            let of = |n: u16| IpAddr::from([0xfd00, 0x5359, 0, n, 0, 0, 0, 0xff]);
            (64, of(0), of(1))
        } else {
            (24, [10, 84, 0, 254].into(), [10, 84, 1, 254].into())
        };
        let config =
            TunConfig { name: None, addresses: vec![(ours_side, prefix)], mtu: conditions.mtu, offload };
        let tun = Tun::open(&config).map_err(|e| e.to_string())?;
        let side = ScriptSide::open((peer_side, prefix), conditions.mtu, peer)?;
        let host = host(conditions, Secret::draw().map_err(|e| e.to_string())?);
        let mut driver = Driver::new(tun, host).map_err(|e| e.to_string())?;
        let waker = driver.waker();
        let (orders, from) = channel();
        let mut puppet = Puppet { ours: Ours::new(conditions)?, orders: from, over: false };
        let driver =
            std::thread::spawn(move || driver.run(&mut puppet, |_, _, _| false).map_err(|e| e.to_string()));
        Ok(Self { side, orders: Some(orders), waker, driver: Some(driver) })
    }

    fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(Instant, &mut Ours, &mut Host) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (tell, answer) = channel();
        let order: Order = Box::new(move |now, ours, host| {
            let _ = tell.send(what(now, ours, host));
        });
        let gone = |_| "the driver is gone".to_owned();
        self.orders.as_ref().expect("until the end").send(order).map_err(|_| gone(()))?;
        self.waker.wake();
        answer.recv().map_err(|_| gone(()))?
    }
}

impl Drop for OverTun {
    fn drop(&mut self) {
        drop(self.orders.take());
        self.waker.wake();
        if let Some(t) = self.driver.take() {
            let _ = t.join();
        }
    }
}

impl Target for OverTun {
    fn kind(&self) -> TargetKind {
        TargetKind::Tun
    }
    fn now(&self) -> Instant {
        self.side.now()
    }
    fn arrives(&mut self, packet: &Packet, damage: &Damage) -> Result<(), String> {
        self.side.arrives(packet, damage)
    }
    fn leaves(&mut self, until: Instant) -> Result<Option<(Instant, Packet)>, String> {
        self.side.leaves(until)
    }
    fn call(&mut self, peer: SocketAddr, call: &Call, data: &[u8]) -> Result<Answer, String> {
        let (call, data) = (call.clone(), data.to_vec());
        // What has arrived is looked at before the application is asked.
        let patience = if call == Call::Accept { 20 } else { 0 };
        for _ in 0..patience {
            let call = call.clone();
            let done = self.ask(move |now, ours, host| ours.call(host, now, peer, &call, &[]));
            if done.is_ok() {
                return done;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.ask(move |now, ours, host| ours.call(host, now, peer, &call, &data))
    }
    fn socket_status(&mut self, peer: SocketAddr) -> Result<SocketStatus, String> {
        self.ask(move |_, ours, host| ours.socket_status(host, peer))
    }
    fn tcp_info(&mut self, peer: SocketAddr) -> Result<TcpInfo, String> {
        self.ask(move |_, ours, host| ours.tcp_info(host, peer))
    }
}
