use super::*;
use crate::{Duration, Rate};
use alloc::format;
use alloc::string::{String, ToString};
use proptest::prelude::*;

fn time(text: &str) -> Result<u64, String> {
    text.parse::<Time>().map(|t| t.0.as_nanos()).map_err(|e| e.to_string())
}
fn rate(text: &str) -> Result<u64, String> {
    let bits = text.parse::<RateSpec>().map(|r| match r {
        RateSpec::Bits(r) => r.bits_per_sec(),
        _ => 0,
    });
    bits.map_err(|e| e.to_string())
}
fn size(text: &str) -> Result<u64, String> {
    text.parse::<Size>().map(|s| s.0).map_err(|e| e.to_string())
}

#[test]
fn accepted_forms() {
    for (text, ns) in [
        ("550 ms", 550_000_000),
        ("550ms", 550_000_000),
        (" 1 s ", 1_000_000_000),
        ("8.6 us", 8_600),
        ("8.6 \u{b5}s", 8_600),
        ("8.6 \u{3bc}s", 8_600),
        ("2 min", 120_000_000_000),
        ("1e-3 s", 1_000_000),
        (".5 s", 500_000_000),
        ("1_000 ns", 1_000),
        ("0 s", 0),
        ("0.0000000015 s", 2),
        ("8.59375 ms", 8_593_750),
    ] {
        assert_eq!(time(text), Ok(ns), "{text}");
    }
    for (text, bits) in [
        ("10.4 Mbit/s", 10_400_000),
        ("256 kbit/s", 256_000),
        ("1.25 MB/s", 10_000_000),
        ("10 Gbit/s", 10_000_000_000),
        ("9600 bit/s", 9_600),
        ("2 Mbps", 2_000_000),
    ] {
        assert_eq!(rate(text), Ok(bits), "{text}");
    }
    assert_eq!("1300 segments/s".parse(), Ok(RateSpec::Packets(Decimal::whole(1300))));
    assert_eq!("1 packet/s".parse(), Ok(RateSpec::Packets(Decimal::whole(1))));
    for (text, bytes) in
        [("1000 B", 1_000), ("64 KiB", 65_536), ("1 MB", 1_000_000), ("1.5 kB", 1_500), ("40 bytes", 40)]
    {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    assert_eq!("64 segments".parse(), Ok(Window::Segments(64)));
    assert_eq!("64 KiB".parse(), Ok(Window::Bytes(65_536)));
    assert_eq!("50 packets".parse(), Ok(QueueLimit::Packets(50)));
    assert_eq!("1.2 BDP".parse(), Ok(QueueLimit::Bdp(Decimal::parse("1.2").unwrap())));
    assert_eq!("unlimited".parse(), Ok(QueueLimit::Unlimited));
    assert_eq!("1 RTT".parse(), Ok(Span::Rtts(Decimal::whole(1))));
}

#[test]
fn refused_forms_say_what_to_write() {
    let cases: &[(Result<u64, String>, &str)] = &[
        (time("275"), "275 has no unit: write a time with a unit, such as \"275 ms\""),
        (time(""), "\"\" is not a time: write a time with a unit, such as \"550 ms\""),
        (time("fast"), "\"fast\" is not a time: write a time with a unit, such as \"550 ms\""),
        (time("-5 ms"), "\"-5 ms\" is negative: write a time with a unit, such as \"550 ms\""),
        (time("5 MS"), "\"MS\" is not a unit of time, did you mean \"ms\"? (known: ns, us, ms, s, min, h)"),
        (time("0.1 ns"), "\"0.1 ns\" is too small to be distinguished from zero"),
        (time("1e30 s"), "\"1e30 s\" is too large"),
        (
            time("1e999999999999 s"),
            "\"1e999999999999\" is not a number: write a time with a unit, such as \"550 ms\"",
        ),
        (rate("10,4 Mbit/s"), "\"10,4 Mbit/s\" has a comma: write decimals with a point, such as \"10.4\""),
        (rate("10.4"), "10.4 has no unit: write a rate with a unit, such as \"10.4 Mbit/s\""),
        (
            rate("0 bit/s"),
            "\"0 bit/s\" never sends anything: write a rate with a unit, such as \"10.4 Mbit/s\"",
        ),
        (rate("10 mb/s"), "\"mb/s\" may mean bits or bytes: write \"10 Mbit/s\" or \"10 MB/s\""),
        (rate("10 Mb/s"), "\"Mb/s\" may mean bits or bytes: write \"10 Mbit/s\" or \"10 MB/s\""),
        (
            rate("10 mbit/s"),
            "\"mbit/s\" is not a unit of rate, did you mean \"Mbit/s\"? (known: bit/s, kbit/s, Mbit/s, Gbit/s)",
        ),
        (rate("10 parsecs"), "\"parsecs\" is not a unit of rate (known: bit/s, kbit/s, Mbit/s, Gbit/s)"),
        (size("1.5 B"), "\"1.5 B\" is not a whole number of bytes"),
        (size("64 KB"), "\"KB\" may mean 1000 or 1024 bytes: write \"64 kB\" or \"64 KiB\""),
        (size("64 Mb"), "\"Mb\" may mean bits or bytes: write \"8 MB\" or \"64 MB\""),
        (rate("10 Mb"), "\"Mb\" may mean bits or bytes: write \"10 Mbit/s\" or \"10 MB/s\""),
        (rate("10 KB"), "\"KB\" is not a unit of rate (known: bit/s, kbit/s, Mbit/s, Gbit/s)"),
        (time("5 mb"), "\"mb\" is not a unit of time (known: ns, us, ms, s, min, h)"),
        (size("99999999999 GiB"), "\"99999999999 GiB\" is too large"),
    ];
    for (got, want) in cases {
        assert_eq!(got.as_ref().unwrap_err(), want);
    }
    assert_eq!(
        "64".parse::<Window>().unwrap_err().to_string(),
        "64 has no unit: write a window with a unit, such as \"64 segments\" or \"64 KiB\""
    );
    assert_eq!(
        "1.5 segments".parse::<Window>().unwrap_err().to_string(),
        "\"1.5 segments\" is not a whole number of segments that can be counted"
    );
    assert_eq!(
        "64 packets".parse::<Window>().unwrap_err().to_string(),
        "\"packets\" is not a unit of a size here: write a window with a unit, such as \"64 segments\" or \"64 KiB\""
    );
    for text in ["1e400 /s", "1e30 /s"] {
        assert_eq!(text.parse::<Frequency>().unwrap_err().to_string(), format!("\"{text}\" is too large"));
    }
    let often = "9.99e29 /s".parse::<Frequency>().unwrap();
    assert_eq!(often.to_string().parse(), Ok(often));
    assert!("nan ms".parse::<Time>().is_err() && "inf s".parse::<Time>().is_err());
    assert!("5 e".parse::<Time>().is_err());
}

#[test]
fn a_number_instead_of_a_text_or_a_table_is_refused_as_bare() {
    let read = |json: &str| {
        let mut json = serde_json::Deserializer::from_str(json);
        let bare = |n: &str| format!("{n} has no unit");
        text_or_table(&mut json, "a text", |_| Err::<Time, _>("text"), bare).unwrap_err().to_string()
    };
    assert!(read("5").contains("5 has no unit"), "{}", read("5"));
    assert!(read("-5").contains("-5 has no unit") && read("0.5").contains("0.5 has no unit"));
    assert!(read("true").contains("expected a text"));
}

#[test]
fn printed_in_the_natural_unit() {
    let t = |ns| Time(Duration::from_nanos(ns)).to_string();
    assert_eq!([t(0), t(1), t(275_000_000), t(8_593_750)], ["0 s", "1 ns", "275 ms", "8.59375 ms"]);
    assert_eq!(t(550_000_000_000), "550 s");
    let r = |b| RateSpec::Bits(Rate::from_bits_per_sec(b)).to_string();
    assert_eq!([r(10_400_000), r(256_000), r(1)], ["10.4 Mbit/s", "256 kbit/s", "1 bit/s"]);
    assert_eq!(Decimal::parse("0.0012").unwrap().to_string(), "0.0012");
    assert_eq!(Decimal::parse("1200").unwrap().to_string(), "1200");
}

proptest! {
    #[test]
    fn times_survive_printing(ns: u64) {
        let t = Time(Duration::from_nanos(ns));
        prop_assert_eq!(t.to_string().parse::<Time>(), Ok(t));
    }
    #[test]
    fn rates_survive_printing(bits in 1u64..) {
        let r = RateSpec::Bits(Rate::from_bits_per_sec(bits));
        prop_assert_eq!(r.to_string().parse::<RateSpec>(), Ok(r));
    }
    #[test]
    fn decimals_survive_printing(digits in 0u64.., places in -25i32..25) {
        let d = Decimal::parse(&format!("{digits}e{places}")).unwrap();
        prop_assert_eq!(Decimal::parse(&d.to_string()), Some(d));
    }
    #[test]
    fn milliseconds_are_exact(whole in 0u64..1_000_000_000, millionths in 0u32..1_000_000) {
        let text = format!("{whole}.{millionths:06} ms");
        prop_assert_eq!(time(&text), Ok(whole * 1_000_000 + u64::from(millionths)));
    }
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,24}") {
        let _ = (time(&text), rate(&text), size(&text));
        let _ = (text.parse::<Window>(), text.parse::<QueueLimit>(), text.parse::<Span>());
    }
    #[test]
    fn no_number_makes_it_panic(text in "[0-9._eE+-]{0,12} ?(ms|Mbit/s|B|BDP|segments|packets)?") {
        let _ = (time(&text), rate(&text), size(&text));
        let _ = (text.parse::<Window>(), text.parse::<QueueLimit>(), text.parse::<Span>());
    }
}
