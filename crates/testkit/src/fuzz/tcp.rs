//! One endpoint that receives segments which are right, nearly right or random, in any order and at any time.

use super::ByteReader;
use core::num::{NonZeroU8, NonZeroU16, NonZeroU32};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Config as Control, NAMES};
use skyhaul_tcp::config::{LossDetection, PRESETS, ProbeNegotiation};
use skyhaul_tcp::{
    Bytes, Config, Connection, Established, Flags, Mark, SackBlocks, Segment, Seq, State, SynOptions,
};

const ISS: Seq = Seq(0u32.wrapping_sub(5000));
const PEER_ISS: Seq = Seq(0u32.wrapping_sub(3000));

struct Fuzzed<'a> {
    input: ByteReader<'a>,
    conn: Connection<Bytes>,
    config: Config,
    now: Instant,
    written: u64,
}

/// Runs the operations that `data` spells on one endpoint.
///
/// # Panics
/// If the endpoint sends without end, sends a segment above the maximum size or anything but one reset after it has closed,
/// or reports an impossible state.
pub fn tcp_ops(data: &[u8]) {
    let mut input = ByteReader(data);
    let first = usize::from(input.byte());
    let mut config = Config::preset(PRESETS[first % PRESETS.len()]).expect("a preset");
    // The choice uses the rest of this byte, not a new byte: files of the corpus keep their meaning.
    let how = first / PRESETS.len();
    config.loss_detection = if how % 2 == 1 { LossDetection::Rack } else { LossDetection::DupAcks };
    config.tail_loss_probe = how % 4 == 3;
    config.receive_buffer = 1 + u64::from(input.word());
    config.send_buffer = 1 + u64::from(input.word());
    config.timestamps = input.one_in(2);
    config.nagle = input.one_in(2);
    config.probes =
        [ProbeNegotiation::Negotiate, ProbeNegotiation::Paper, ProbeNegotiation::Off][input.below(3)];
    let control = Control::by_name(NAMES[input.below(NAMES.len())]).expect("a name");
    let cc = control.build(&config.rules);
    let rng = Rng::stream(1, "fuzz");
    let now = Instant::ZERO;
    let conn = match input.below(4) {
        0 => Connection::connect(now, config, cc, ISS, rng),
        1 => Connection::listen(config, cc, ISS, rng),
        _ => {
            let e = Established {
                iss: ISS,
                peer_iss: PEER_ISS,
                peer: &config,
                sack: input.one_in(2),
                rtt: Some(Duration::from_millis(100)),
                probes: config.probes != ProbeNegotiation::Off,
            };
            Connection::established(now, config, cc, rng, &e)
        }
    };
    let mut f = Fuzzed { input, conn, config, now, written: 0 };
    f.drain();
    while !f.input.is_empty() {
        f.operation();
        f.drain();
        f.check();
    }
}

impl Fuzzed<'_> {
    fn operation(&mut self) {
        let (t, now) = (&mut self.input, self.now);
        match t.below(16) {
            0 | 1 => {
                let n = u64::from(t.word() % 8192);
                let bytes: Vec<u8> = (self.written..self.written + n).map(|i| i as u8).collect();
                let taken = self.conn.write(now, &bytes, n);
                assert!(taken <= n);
                self.written += taken;
            }
            2 => {
                let n = u64::from(t.word() % 8192);
                let had = self.conn.readable();
                let got = self.conn.read(&mut vec![0; n as usize], n);
                assert_eq!(got, n.min(had));
            }
            // Both are rare: otherwise a 3 delivers a segment, as the numbers from 7 on do.
            3 if t.one_in(8) => self.conn.shutdown(now),
            3 if t.one_in(16) => self.conn.abort(now),
            4 => self.now = now + Duration::from_micros(u64::from(t.word()) * 10),
            5 | 6 => {
                let next = self.conn.next_timeout();
                if next < Instant::MAX {
                    self.now = self.now.max(next);
                    self.conn.handle_timeout(self.now);
                }
            }
            _ => {
                let seg = self.segment();
                let payload = vec![0; seg.len as usize];
                let _ = self.conn.handle(self.now, &seg, &payload);
            }
        }
    }

    /// A number at, near, or far from `expected`.
    fn near(&mut self, expected: u32) -> Seq {
        let t = &mut self.input;
        Seq(match t.below(8) {
            0..=3 => expected,
            4 => expected.wrapping_add(u32::from(t.word())),
            5 => expected.wrapping_sub(u32::from(t.word())),
            6 => expected.wrapping_add(t.below(16) as u32).wrapping_sub(8),
            _ => t.long(),
        })
    }

    fn segment(&mut self) -> Segment {
        let snap = self.conn.snapshot();
        let seq = PEER_ISS.0.wrapping_add(self.conn.receiver().next_expected() as u32);
        let una = ISS.0.wrapping_add(snap.una as u32);
        let expected_ack = if self.input.one_in(2) { una } else { ISS.0.wrapping_add(snap.nxt as u32) };
        let mut seg = Segment { seq: self.near(seq), ack: self.near(expected_ack), ..Segment::default() };
        let opening = matches!(self.conn.state(), State::Listen | State::SynSent);
        if opening {
            seg.seq = PEER_ISS;
            seg.ack = ISS.add(1);
        }
        let t = &mut self.input;
        seg.flags = match t.below(12) {
            0 => Flags::from_bits(t.byte()),
            1 => Flags::ACK.with(Flags::FIN),
            2 if t.one_in(8) => Flags::RST,
            3 if opening => Flags::SYN,
            _ if opening => Flags::SYN.with(Flags::ACK),
            _ => Flags::ACK,
        };
        seg.len = match t.below(4) {
            0 | 1 => 0,
            2 => u32::from(t.word()) % 3000,
            _ => self.config.mss,
        };
        seg.window = match t.below(4) {
            0 => 0,
            1 => u32::from(t.word()),
            2 => t.long() >> 2,
            _ => 20_000,
        };
        if t.one_in(2) {
            seg.ts = Some((t.long(), t.long()));
        }
        seg.mark = match t.below(10) {
            0 => Mark::Dummy,
            1 => Mark::Nil,
            2 => Mark::DummyAck,
            3 => Mark::NilAck,
            _ => Mark::None,
        };
        seg.probe_id = t.one_in(2).then(|| t.word());
        if seg.flags.has(Flags::SYN) {
            seg.syn = SynOptions {
                mss: t.one_in(2).then(|| t.word()),
                window_scale: t.one_in(2).then(|| t.byte()),
                sack_permitted: t.one_in(2),
                probes: t.one_in(2),
                ack_cc: false,
                snack: false,
            };
        }
        // Derived from the probe's identifier, not from new bytes: files of the corpus keep their meaning.
        seg.waves.number = seg.probe_id.filter(|n| n % 3 == 0).and_then(NonZeroU16::new);
        seg.waves.rate = seg.probe_id.and_then(|n| NonZeroU32::new(u32::from(n) << (n % 17)));
        seg.syn.ack_cc = seg.flags.has(Flags::SYN) && seg.probe_id.is_some_and(|n| n % 5 == 0);
        seg.ack_ratio = seg.probe_id.filter(|n| n % 7 == 0).and_then(|n| NonZeroU8::new(n as u8));
        let mut blocks = SackBlocks::EMPTY;
        for _ in 0..self.input.below(5) {
            let from = una.wrapping_add(u32::from(self.input.word()));
            let (from, len) = (self.near(from), u32::from(self.input.word()));
            blocks.push(from, from.add(len));
        }
        if self.input.one_in(3) {
            seg.sack = blocks;
        }
        seg
    }

    fn drain(&mut self) {
        let mut n = 0;
        while let Some(seg) = self.conn.poll_transmit(self.now) {
            n += 1;
            // A write fills at most the send buffer, and no segment that we choose is below 48 bytes.
            assert!(n < 10_000, "sends without end: {seg:?}");
            assert!(seg.len <= self.config.mss, "{seg:?}");
            let lone_reset = n == 1 && seg.flags.has(Flags::RST);
            assert!(self.conn.state() != State::Closed || lone_reset, "sends after its end: {seg:?}");
            let mut payload = vec![0; seg.len as usize];
            self.conn.payload(&seg, &mut payload);
            let at = seg.seq.diff(ISS) as i64 - 1;
            let una = self.conn.snapshot().una as i64 - 1;
            for (i, &b) in payload.iter().enumerate() {
                let offset = at + i as i64;
                assert!(offset < una || b == offset as u8, "byte {offset} of the stream is wrong in {seg:?}");
            }
        }
        while self.conn.poll_event().is_some() {}
    }

    fn check(&self) {
        let s = self.conn.snapshot();
        assert!(s.cwnd.is_finite() && s.cwnd >= 1.0, "{s:?}");
        assert!(s.una <= s.nxt && s.nxt <= self.written + 2, "{s:?}, {} written", self.written);
        assert!(s.pipe <= 2 * (self.written + 2), "{s:?}");
        assert!(self.conn.unacked() <= self.config.send_buffer);
        assert!(self.conn.readable() <= self.config.receive_buffer);
    }
}
