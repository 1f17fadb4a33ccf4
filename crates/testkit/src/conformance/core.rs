//! The endpoint of the simulator as a target: segments without bytes, in virtual time.

use super::conditions::Conditions;
use super::option::Opt;
use super::packet::{ACK, Damage, Packet, SYN, Tcp, Transport};
use super::target::{
    Answer, Call, PORT, SocketStatus, Target, TargetKind, TcpInfo, addresses, our_config, our_control,
};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_tcp::{Bytes, Config, Connection, Event, Flags, Mark, SackBlocks, Segment, Seq, State};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Our endpoint.
#[derive(Debug)]
pub struct Core {
    conditions: Conditions,
    /// Length of its times, in per cent of the configured ones.
    percent: u64,
    conn: Option<Connection<Bytes>>,
    now: Instant,
    out: VecDeque<(Instant, Packet)>,
    /// Addresses of the endpoint and of the peer.
    ends: [SocketAddr; 2],
    connected: bool,
    failure: Option<SocketStatus>,
}

/// Header bytes of IPv4 and TCP.
const HEADERS: u32 = 40;
/// Our initial sequence number, close to the wrap.
const ISS: Seq = Seq(0u32.wrapping_sub(5000));

impl Core {
    /// An endpoint as the case wants it.
    #[must_use]
    pub fn new(conditions: &Conditions) -> Self {
        Self::scaled(conditions, 100)
    }

    /// The same with times of `percent` of the configured length.
    #[must_use]
    pub(super) fn scaled(conditions: &Conditions, percent: u64) -> Self {
        let [stack, peer] = addresses(false);
        Self {
            conditions: conditions.clone(),
            percent,
            conn: None,
            now: Instant::ZERO,
            out: VecDeque::new(),
            ends: [SocketAddr::new(stack, PORT), SocketAddr::new(peer, 0)],
            connected: false,
            failure: None,
        }
    }

    fn open(&mut self, active: bool) -> Result<(), String> {
        let mut config = our_config(&self.conditions);
        let limit = u32::from(self.conditions.mtu) - HEADERS;
        (config.segment_limit, config.mss) = (Some(limit), limit);
        config.probe_ids = true;
        stretch(&mut config, self.percent);
        config.probes = match self.conditions.profile.as_str() {
            "off" => ProbeNegotiation::Off,
            "paper" => ProbeNegotiation::Paper,
            _ => ProbeNegotiation::Negotiate,
        };
        let cc = our_control(&self.conditions)?.build(&config.rules);
        let rng = Rng::stream(1, "conformance");
        self.conn = Some(match active {
            true => Connection::connect(self.now, config, cc, ISS, rng),
            false => Connection::listen(config, cc, ISS, rng),
        });
        Ok(())
    }

    fn gather(&mut self) {
        let Some(conn) = &mut self.conn else { return };
        while let Some(seg) = conn.poll_transmit(self.now) {
            let mut payload = vec![0; seg.len as usize];
            conn.payload(&seg, &mut payload);
            let shift = if seg.flags.has(Flags::SYN) { 0 } else { conn.scales().0 };
            let tcp = bytes_of(&seg, shift, payload);
            self.out.push_back((
                self.now,
                Packet {
                    src: self.ends[0],
                    dst: self.ends[1],
                    ttl: 64,
                    tos: 0,
                    dont_fragment: true,
                    transport: Transport::Tcp(tcp),
                },
            ));
        }
        while let Some(event) = conn.poll_event() {
            match event {
                Event::Connected => self.connected = true,
                Event::Reset => {
                    self.failure =
                        Some(if self.connected { SocketStatus::Reset } else { SocketStatus::Refused });
                }
                Event::TimedOut => self.failure = Some(SocketStatus::TimedOut),
                Event::PeerFinished | Event::Closed => {}
            }
        }
    }
    fn conn(&mut self) -> Result<&mut Connection<Bytes>, String> {
        self.conn.as_mut().ok_or_else(|| "there is no connection".to_owned())
    }
}

impl Target for Core {
    fn kind(&self) -> TargetKind {
        TargetKind::Core
    }
    fn now(&self) -> Instant {
        self.now
    }
    fn arrives(&mut self, packet: &Packet, _: &Damage) -> Result<(), String> {
        let Transport::Tcp(tcp) = &packet.transport else { return Err("no segment".into()) };
        self.ends[1] = packet.src;
        let now = self.now;
        let conn = self.conn()?;
        let shift = if tcp.flags & SYN != 0 { 0 } else { conn.scales().1 };
        let seg = segment_of(tcp, shift);
        let _ = conn.handle(now, &seg, &tcp.payload);
        self.gather();
        Ok(())
    }
    fn leaves(&mut self, until: Instant) -> Result<Option<(Instant, Packet)>, String> {
        loop {
            if let Some(next) = self.out.pop_front() {
                return Ok(Some(next));
            }
            match self.conn.as_ref().map(Connection::next_timeout).filter(|t| *t <= until) {
                Some(due) => {
                    self.now = self.now.max(due);
                    let now = self.now;
                    self.conn()?.handle_timeout(now);
                    self.gather();
                }
                None => {
                    self.now = self.now.max(until);
                    return Ok(None);
                }
            }
        }
    }
    fn call(&mut self, peer: SocketAddr, call: &Call, data: &[u8]) -> Result<Answer, String> {
        let now = self.now;
        self.ends[1] = peer;
        let answer = match call {
            Call::Listen => self.open(false).map(|()| Answer::Done)?,
            Call::Connect => self.open(true).map(|()| Answer::Done)?,
            Call::Accept if self.connected => Answer::Done,
            Call::Accept => return Err("it is not connected".into()),
            Call::Write(..) => Answer::Wrote(self.conn()?.write(now, data, data.len() as u64)),
            Call::Read(most, _) => {
                let conn = self.conn()?;
                let n = conn.readable().min(*most);
                let mut out = vec![0; n as usize];
                conn.read(&mut out, n);
                Answer::Read(out)
            }
            Call::Shutdown => {
                self.conn()?.shutdown(now);
                Answer::Done
            }
            Call::Close => {
                self.conn()?.abandon(now);
                Answer::Done
            }
            Call::Abort => {
                self.conn()?.abort(now);
                Answer::Done
            }
        };
        self.gather();
        Ok(answer)
    }
    fn socket_status(&mut self, _: SocketAddr) -> Result<SocketStatus, String> {
        let failure = self.failure;
        let conn = self.conn()?;
        let end = conn.peer_finished() && conn.readable() == 0;
        Ok(failure.unwrap_or(if end { SocketStatus::End } else { SocketStatus::Nothing }))
    }
    fn tcp_info(&mut self, _: SocketAddr) -> Result<TcpInfo, String> {
        self.conn().map(|c| tcp_info_of(c))
    }
}

/// Scales every time of an endpoint but the resolution of its clocks.
fn stretch(c: &mut Config, percent: u64) {
    let times = [
        &mut c.rto.initial,
        &mut c.rto.min,
        &mut c.rto.margin,
        &mut c.rto.max,
        &mut c.delayed_ack.delay,
        &mut c.time_wait,
        &mut c.user_timeout,
        &mut c.keepalive.idle,
        &mut c.keepalive.interval,
        &mut c.fin_timeout,
    ];
    for t in times {
        *t = Duration::from_nanos(t.as_nanos() / 100 * percent);
    }
}

/// What can be seen of one of our connections.
#[must_use]
pub fn tcp_info_of(conn: &Connection<Bytes>) -> TcpInfo {
    let s = conn.snapshot();
    TcpInfo {
        state: match conn.state() {
            State::Listen => "listen",
            State::SynSent => "syn-sent",
            State::SynReceived => "syn-received",
            State::Established => "established",
            State::FinWait1 => "fin-wait-1",
            State::FinWait2 => "fin-wait-2",
            State::CloseWait => "close-wait",
            State::Closing => "closing",
            State::LastAck => "last-ack",
            State::TimeWait => "time-wait",
            State::Closed => "closed",
        },
        cwnd: s.cwnd.floor() as u32,
        ssthresh: s.ssthresh.min(f64::from(u32::MAX)) as u32,
        rto: s.rto,
        mss: conn.sender().segment_size(),
    }
}

fn segment_of(tcp: &Tcp, shift: u8) -> Segment {
    let mut seg = Segment {
        seq: Seq(tcp.seq),
        ack: Seq(tcp.ack),
        len: tcp.payload.len() as u32,
        window: u32::from(tcp.window) << shift,
        flags: Flags::from_header(tcp.flags.to_be_bytes()),
        ..Segment::default()
    };
    for o in &tcp.options {
        match o {
            Opt::Mss(n) => seg.syn.mss = Some(*n),
            Opt::Scale(n) => seg.syn.window_scale = Some(*n),
            Opt::SackPermitted => seg.syn.sack_permitted = true,
            Opt::Capability(..) => seg.syn.probes = true,
            Opt::Stamps(a, b) => seg.ts = Some((*a, *b)),
            Opt::Sack(blocks) => {
                let mut all = SackBlocks::EMPTY;
                blocks.iter().for_each(|(a, b)| all.push(Seq(*a), Seq(*b)));
                seg.sack = all;
            }
            Opt::Probe(kind, id) => {
                seg.mark = match kind {
                    0x01 => Mark::Dummy,
                    0x02 => Mark::Nil,
                    0x81 => Mark::DummyAck,
                    _ => Mark::NilAck,
                };
                seg.probe_id = Some(*id);
            }
            Opt::End | Opt::Nop | Opt::Other(..) => {}
        }
    }
    if tcp.flags & SYN == 0 {
        seg.syn = skyhaul_tcp::SynOptions::default();
    }
    seg
}

fn bytes_of(seg: &Segment, shift: u8, payload: Vec<u8>) -> Tcp {
    let mut options = Vec::new();
    options.extend(seg.syn.mss.map(Opt::Mss));
    options.extend(seg.syn.sack_permitted.then_some(Opt::SackPermitted));
    options.extend(seg.syn.window_scale.map(Opt::Scale));
    options.extend(seg.syn.probes.then_some(Opt::Capability(0x17, 0)));
    options.extend(seg.ts.map(|(a, b)| Opt::Stamps(a, b)));
    let kind = match seg.mark {
        Mark::None => None,
        Mark::Dummy => Some(0x01),
        Mark::Nil => Some(0x02),
        Mark::DummyAck => Some(0x81),
        Mark::NilAck => Some(0x82),
    };
    options.extend(kind.map(|k| Opt::Probe(k, seg.probe_id.unwrap_or(0))));
    if !seg.sack.is_empty() {
        options.push(Opt::Sack(seg.sack.as_slice().iter().map(|(a, b)| (a.0, b.0)).collect()));
    }
    Tcp {
        seq: seg.seq.0,
        ack: if seg.flags.has(Flags::ACK) { seg.ack.0 } else { 0 },
        flags: u16::from_be_bytes(seg.flags.to_header()),
        window: (seg.window >> shift).min(65_535) as u16,
        urgent: 0,
        options,
        payload,
    }
}

const _: () = assert!(ACK == Flags::ACK.bits() as u16);
