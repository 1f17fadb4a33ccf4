//! Times, ranges and counts as cases write them.

use skyhaul_base::Duration;

/// A number, or what is wrong.
pub(super) fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("a whole number, not {text:?}"))
}

/// `100ms`, `1.5s`, `20us`, `2min`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        _ => return Err(format!("a time with its unit such as 100ms, 1.5s or 2min, not {text:?}")),
    };
    let number: f64 = number.parse().map_err(|_| format!("a time such as 100ms, not {text:?}"))?;
    if !(0.0..1e6).contains(&number) {
        return Err(format!("a time between 0 and a million units, not {text:?}"));
    }
    Ok(Duration::from_secs_f64(number * scale))
}

/// `5`, `5..7`, `5..` (or more), `..7` (or less).
pub(super) fn range<T>(
    text: &str,
    least: T,
    most: T,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<(T, T), String>
where
    T: Copy,
{
    match text.split_once("..") {
        None => read(text).map(|n| (n, n)),
        Some((a, b)) => {
            let low = if a.is_empty() { least } else { read(a)? };
            let high = if b.is_empty() { most } else { read(b)? };
            Ok((low, high))
        }
    }
}

/// Bytes in hexadecimal, with or without spaces.
pub(super) fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let bad = || format!("bytes in hexadecimal such as 0a1b, not {text:?}");
    if digits.len() % 2 != 0 || !digits.is_ascii() {
        return Err(bad());
    }
    let pairs = digits.chunks(2).map(|p| std::str::from_utf8(p).map_err(|_| bad()));
    pairs.map(|p| u8::from_str_radix(p?, 16).map_err(|_| bad())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        for bad in ["100", "ms", "-1s", "1h", "x"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(range("3..", 0, 9, whole), Ok((3, 9)));
        assert_eq!(range("4", 0, 9, whole), Ok((4, 4)));
        assert_eq!(hex("0a 1b"), Ok(vec![10, 27]));
        assert!(hex("0a1").is_err() && hex("zz").is_err());
    }
}
