//! Published elements as they are found in the wild: numbers of every length and in every notation. Reports of other
//! projects, docs/reports.md.

use skyhaul_orbit::constellation::{omm, tle};
use skyhaul_orbit::{Config, Constellation, Sky, Station};

/// The space station; the number is left out.
const ONE: &str = "1 NNNNNU 98067A   20194.88612269 -.00002218  00000-0 -31515-4 0  999";
const TWO: &str = "2 NNNNN  51.6461 221.2784 0001413  89.1723 280.4612 15.4950789623600";

fn sky(over: impl Into<Constellation>) -> Sky {
    let mut config = Config::new(Station::at(0.0, 0.0), Station::at(0.0, 0.0), over);
    config.epoch = Some("2020-07-13T00:00:00Z".parse().unwrap());
    Sky::new(&config).unwrap()
}

/// The elements with this number in columns 3 to 7, and the check digits that fit.
fn two_lines(number: &str) -> Sky {
    assert_eq!(number.len(), 5);
    let whole = |line: &str| {
        let line = line.replace("NNNNN", number);
        let value = |c: char| c.to_digit(10).unwrap_or(u32::from(c == '-'));
        let sum: u32 = line.chars().map(value).sum();
        format!("{line}{}", sum % 10)
    };
    let text = format!("{}\n{}\n", whole(ONE), whole(TWO));
    sky(tle::Config { file: "x".into(), text: Some(text), elevation: 10.0 })
}

fn message(text: &str) -> Sky {
    sky(omm::Config { file: "x".into(), text: Some(text.into()), elevation: 10.0 })
}

/// Kilometres between the only satellites of two skies, at most, over a day.
fn apart(a: &Sky, b: &Sky) -> f64 {
    let at = |sky: &Sky, hour: u64| {
        let moment = sky.moment(skyhaul_base::Instant::from_secs_f64(3600.0 * hour as f64));
        sky.place(0, &moment).unwrap()
    };
    (0..24).map(|hour| at(a, hour).distance(at(b, hour))).fold(0.0, f64::max)
}

/// python-sgp4#77, gpredict#412: numbers above 99,999 have a letter in front, without I and O.
#[test]
fn catalogue_numbers_may_begin_with_a_letter() {
    for (written, number) in [
        ("25544", "25544"),
        ("A0000", "100000"),
        ("A5544", "105544"),
        ("H9999", "179999"),
        ("J0000", "180000"),
        ("N1234", "221234"),
        ("P0000", "230000"),
        ("Z9999", "339999"),
    ] {
        assert_eq!(two_lines(written).name(0), number, "{written}");
    }
}

/// python-sgp4#81: short numbers may be padded with blanks instead of zeros.
#[test]
fn catalogue_numbers_may_begin_with_blanks() {
    for (written, number) in [(" 4859", "4859"), ("    5", "5"), ("04859", "4859")] {
        assert_eq!(two_lines(written).name(0), number, "{written:?}");
    }
}

/// satellite-js#135: CelesTrak writes numbers, Space-Track texts; catalogue numbers may have six or nine digits.
#[test]
fn messages_may_hold_numbers_or_texts() {
    let fields = [
        ("MEAN_MOTION", "15.49507896"),
        ("ECCENTRICITY", "0.0001413"),
        ("INCLINATION", "51.6461"),
        ("RA_OF_ASC_NODE", "221.2784"),
        ("ARG_OF_PERICENTER", "89.1723"),
        ("MEAN_ANOMALY", "280.4612"),
        ("BSTAR", "-3.1515e-5"),
        ("EPHEMERIS_TYPE", "0"),
    ];
    let lines = two_lines("25544");
    for number in ["25544", "105544", "799500123"] {
        for quote in ["", "\""] {
            let all = fields.into_iter().chain([("NORAD_CAT_ID", number)]);
            let all: String = all.map(|(key, value)| format!(", \"{key}\": {quote}{value}{quote}")).collect();
            let sky = message(&format!("[{{\"EPOCH\": \"2020-07-12T21:16:01.000416\"{all}}}]"));
            assert_eq!(sky.name(0), number);
            // The day of the two lines has eight digits: 0.4 ms, 3 m of flight.
            let apart = apart(&sky, &lines);
            assert!(apart < 0.01, "{number} {quote}: {apart} km");
        }
    }
}

/// TLEscope#56: an epoch is not cut at its T.
#[test]
fn the_time_of_an_epoch_counts() {
    let with = |epoch: &str| {
        message(&format!(
            "EPOCH = {epoch}\nNORAD_CAT_ID = 25544\nMEAN_MOTION = 15.49507896\nECCENTRICITY = .0001413\nINCLINATION = 51.6461\n\
             RA_OF_ASC_NODE = 221.2784\nARG_OF_PERICENTER = 89.1723\nMEAN_ANOMALY = 280.4612\nBSTAR = -3.1515e-5\n"
        ))
    };
    let lines = two_lines("25544");
    for epoch in ["2020-07-12T21:16:01.000416", "2020-07-12T21:16:01.000416Z", "2020-194T21:16:01.000416"] {
        assert!(apart(&with(epoch), &lines) < 0.01, "{epoch}");
    }
    assert!(apart(&with("2020-07-12T00:00:00"), &lines) > 1000.0);
}
