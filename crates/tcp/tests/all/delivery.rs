//! The stream arrives and the connection ends, whatever packets are lost, duplicated or reordered: both directions at once,
//! with sequence numbers that wrap, every algorithm, every preset, with and without probes.

use crate::common;

use common::{Pattern, Variant, check_sender_invariants, explain, variants};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::{Bytes, Config, Counted};
use skyhaul_testkit::pair::{Act, EarlyData, Handshake, PayloadStore};
use skyhaul_testkit::{Pair, Setup, Side};

/// A transfer both ways.
#[derive(Clone, Debug)]
struct Transfer {
    variant: Variant,
    modelled: bool,
    /// Data in the client's SYN, and whether the server takes it.
    early: Option<EarlyData>,
    bytes: [u64; 2],
    /// The side whose application closes only after it has read everything.
    patient: Option<usize>,
    /// The side whose application reads a little now and then for 20 s, so that its window closes.
    dripping: Option<usize>,
    patterns: [Pattern; 2],
    one_way: Duration,
    receive_buffer: u64,
}

impl Transfer {
    fn pair<S: PayloadStore>(&self) -> Pair<S> {
        let mut setup = Setup::new(self.variant.config, &self.variant.cc, self.one_way)
            // Patterns may be worse than a stack that gives up would bear.
            .both(|c| (c.receive_buffer, c.max_retransmissions) = (self.receive_buffer, 0));
        if self.modelled {
            setup.early = self.early;
        } else {
            setup.handshake = Handshake::Skipped(Some(self.one_way * 2));
        }
        let mut p: Pair<S> = setup.build();
        for (i, side) in Side::BOTH.into_iter().enumerate() {
            p.faults(side, self.patterns[i].faults());
            p.send(side, self.bytes[i], false);
            let later = if self.patient == Some(i) { Duration::from_secs(40) } else { Duration::ZERO };
            p.at(Instant::ZERO + later, side, Act::Shutdown);
            if self.dripping == Some(i) {
                p.reads_by_hand(side);
                for n in 0..200 {
                    p.at(Instant::ZERO + Duration::from_millis(100) * n, side, Act::Read(n * 37 % 900));
                }
                p.at(Instant::ZERO + Duration::from_secs(20), side, Act::ReadEagerly);
            }
        }
        p
    }

    fn run<S: PayloadStore>(&self) -> Pair<S> {
        let mut p = self.pair::<S>();
        let _named = Named(&self.variant.name);
        p.run_with(Instant::from_secs_f64(1e6), check_sender_invariants());
        for side in Side::BOTH {
            let e = p.end(side);
            assert_eq!(e.corrupt, None, "{side:?} read something that was not written");
            assert_eq!(
                e.received,
                p.end(side.other()).written(),
                "{side:?} reads everything\n{}",
                explain(&p)
            );
        }
        assert!(p.finished(), "both sides end\n{}", explain(&p));
        p
    }
}

/// Says which variant failed.
struct Named<'a>(&'a str);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with {}", self.0);
        }
    }
}

fn early() -> impl Strategy<Value = Option<EarlyData>> {
    let some = (0..5_000u64, prop_oneof![1..20u32, Just(1420)], any::<bool>());
    proptest::option::of(some.prop_map(|(written, most, taken)| EarlyData { written, most, taken }))
}

fn transfer() -> impl Strategy<Value = Transfer> {
    let bytes = prop_oneof![Just(0), 1..5_000u64, 5_000..120_000u64];
    (
        0..variants().len(),
        any::<bool>(),
        early(),
        [bytes.clone(), bytes],
        [(); 2].map(|()| prop_oneof![Just(None), Just(Some(0)), Just(Some(1))]),
        [Pattern::strategy(), Pattern::strategy()],
        prop_oneof![Just(1u64), Just(5_000), Just(50_000), Just(275_000)],
        prop_oneof![Just(3_000u64), Just(20_000), Just(65_535), Just(200_000)],
    )
        .prop_map(
            |(v, modelled, early, bytes, [patient, dripping], patterns, micros, receive_buffer)| Transfer {
                variant: variants()[v].clone(),
                modelled,
                early,
                bytes,
                patient,
                dripping,
                patterns,
                one_way: Duration::from_micros(micros),
                receive_buffer,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(400), max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_stream_arrives_and_the_connection_ends(t in transfer()) {
        t.run::<Bytes>();
    }

    #[test]
    fn counted_and_stored_payload_behave_the_same(t in transfer()) {
        prop_assert_eq!(t.run::<Counted>().log, t.run::<Bytes>().log);
    }
}

#[test]
fn every_variant_delivers_through_a_clean_and_through_a_bad_path() {
    for variant in variants() {
        for patterns in [[Pattern::CLEAN, Pattern::CLEAN], [Pattern::bad(3), Pattern::bad(4)]] {
            let t = Transfer {
                variant: variant.clone(),
                modelled: true,
                early: None,
                bytes: [300_000, 50_000],
                patient: None,
                dripping: None,
                patterns,
                one_way: Duration::from_millis(275),
                receive_buffer: 64_000,
            };
            t.run::<Bytes>();
        }
    }
}

#[test]
fn half_closed_connections_carry_data_the_other_way() {
    for first in Side::BOTH {
        let setup = Setup::new(Config::rfc(), &variants()[0].cc, Duration::from_millis(50));
        let mut p: Pair<Bytes> = setup.build();
        p.send(first, 10_000, true);
        p.run_until(Instant::from_secs_f64(3.0));
        assert!(p.conn(first.other()).peer_finished());
        p.send(first.other(), 100_000, true);
        p.run_to_end(Instant::from_secs_f64(1e4));
        assert!(p.finished());
        assert_eq!(p.end(first).received, 100_000);
    }
}
