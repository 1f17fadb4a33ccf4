//! A flow in one direction without losses, of which some data segments are marked, beside the two ends of a full connection on the same
//! path.

use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::{
    Codepoint, Config, Counted, EcnBytes, Extras, HandshakeResult, Head, Seq, Sink, Source, one_way,
};
use skyhaul_testkit::pair::Handshake;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};
use std::collections::VecDeque;
use std::sync::Arc;

/// A segment as it was sent: time, sequence number, length, acknowledgement number, flags, ECN field, counters of bytes.
pub(crate) type Sent = (Instant, u32, u32, u32, u8, Codepoint, Option<EcnBytes>);

/// Bytes of the transfer.
const BYTES: u64 = 200_000;
/// The numbers of the data segments that are marked.
const MARKED: [u64; 10] = [20, 21, 40, 90, 130, 131, 132, 133, 134, 199];
/// Propagation delay in one direction.
const WAY: Duration = Duration::from_millis(50);
const RTT: Duration = Duration::from_millis(100);

/// Asserts that a flow in one direction sends what the two ends of a connection with the same control send. Returns the segments
/// of the flow, from the client and from the server, and the connection.
pub(crate) fn like_two_connections(
    cc: &str,
    config: Config,
    control: &Control,
) -> ([Vec<Sent>; 2], Pair<Counted>) {
    let sent = flow(&config, control);
    let mut setup = Setup::new(config, control, WAY);
    setup.handshake = Handshake::Skipped(Some(RTT));
    setup.iss = [Seq(0), Seq(0)];
    let mut p: Pair<Counted> = setup.build();
    p.faults(Side::Client, move |d| {
        let marked = d.is_data() && MARKED.contains(&d.data_index);
        if marked { Verdict::Mark } else { Verdict::Deliver }
    });
    p.send(Side::Client, BYTES, false);
    p.run_until(super::secs(1000.0));
    for (side, ours) in [(Side::Client, &sent[0]), (Side::Server, &sent[1])] {
        let theirs: Vec<Sent> = p
            .sent(side)
            .map(|e| (e.at, &e.segment))
            .map(|(at, s)| (at, s.seq.0, s.len, s.ack.0, s.flags.bits(), s.ecn, s.ecn_bytes))
            .collect();
        let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert_eq!(first, None, "{cc} {side:?}: {:?}", first.map(|n| (ours[n], theirs[n])));
        assert_eq!(ours.len(), theirs.len(), "{cc} {side:?}");
    }
    (sent, p)
}

/// The segments of the two ends of the flow.
fn flow(config: &Config, cc: &Control) -> [Vec<Sent>; 2] {
    let config = Arc::new(*config);
    let known = HandshakeResult { rtt: Some(RTT) };
    let control = cc.build(&config.rules);
    let (mut source, mut sink): (Source<Counted>, Sink<Counted>) =
        one_way(Instant::ZERO, &config, control, Rng::stream(1, "client"), known);
    let (mut now, mut data_index) = (Instant::ZERO, 0);
    let (mut forth, mut back) = (VecDeque::new(), VecDeque::new());
    let mut sent = [Vec::new(), Vec::new()];
    let entry = |now, h: &Head, bytes| (now, h.seq.0, h.len, h.ack.0, h.flags.bits(), h.ecn(), bytes);
    source.offer(now, BYTES);
    loop {
        while let Some((mut head, extras)) = source.poll(now) {
            assert!(extras.is_none(), "nothing was lost");
            sent[0].push(entry(now, &head, None));
            if head.ecn() != Codepoint::NotCapable && MARKED.contains(&data_index) {
                head.set_ecn(Codepoint::Marked);
            }
            data_index += 1;
            forth.push_back((now + WAY, head));
        }
        while let Some((head, extras)) = sink.poll(now) {
            let ecn_bytes = extras.as_ref().and_then(|x| x.ecn_bytes);
            // The counters of accurate ECN are all that the extras have.
            let rest = extras.as_deref().map(|x| Extras { ecn_bytes: None, ..*x });
            assert_eq!(rest, ecn_bytes.map(|_| Extras::NONE), "nothing was lost");
            sent[1].push(entry(now, &head, ecn_bytes));
            back.push_back((now + WAY, head, extras));
        }
        let at_server = forth.front().map_or(Instant::MAX, |f| f.0);
        let at_client = back.front().map_or(Instant::MAX, |f| f.0);
        now = at_server.min(at_client).min(source.next_timeout()).min(sink.next_timeout());
        if now == Instant::MAX {
            return sent;
        }
        // As in a pair: what arrives at the client first, then what arrives at the server, then timers.
        if at_client == now {
            let (_, head, extras) = back.pop_front().unwrap();
            source.handle(now, &head, extras.as_deref()).unwrap();
        } else if at_server == now {
            sink.handle(now, &forth.pop_front().unwrap().1, None).unwrap();
        } else {
            source.handle_timeout(now);
            sink.handle_timeout(now);
        }
    }
}
