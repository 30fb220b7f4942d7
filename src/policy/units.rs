//! Reads and writes byte sizes (`256KiB`) and durations (`90d`).

use std::time::Duration;

use super::error::shown;

/// Unit names of byte sizes, largest first, with their bytes.
const BYTE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Unit names of durations, largest first, with their seconds.
const DURATION_UNITS: [(char, u64); 6] = [
    ('y', 365 * 86_400),
    ('w', 7 * 86_400),
    ('d', 86_400),
    ('h', 3_600),
    ('m', 60),
    ('s', 1),
];

/// What an operator may write as a byte size.
pub(super) const BYTES_HELP: &str = "Write bytes as a number, or a string with KiB, MiB, GiB, TiB (1024), KB, MB, GB, TB (1000) or B";

/// What an operator may write as a duration.
pub(super) const DURATION_HELP: &str = "Write whole numbers with s, m (minutes), h, d, w or y (365 d), largest first, such as \"90d\" or \"1d12h\"";

/// Bytes of a size such as `256KiB`, `3.5MiB`, `1GB`, `512B`. A fraction has up to three
/// digits and the result is rounded down, so a limit is never above what was written.
///
/// # Errors
/// A fragment that says what is wrong.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let number_len = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(number_len).unwrap_or((text, ""));
    let bytes = unit_bytes(unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') || fraction.len() > 3 {
        return Err("the number before the unit is not a size".to_owned());
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).unwrap_or(0));
    let digits = |text: &str| {
        text.parse::<u64>()
            .map(u128::from)
            .map_err(|_| "the number before the unit is too large".to_owned())
    };
    let scaled = (digits(whole)? * scale + digits(fraction)?) * u128::from(bytes) / scale;
    u64::try_from(scaled).map_err(|_| "the size is too large".to_owned())
}

fn unit_bytes(unit: &str) -> Result<u64, String> {
    if let Some((_, bytes)) = BYTE_UNITS.iter().find(|(name, _)| *name == unit) {
        return Ok(*bytes);
    }
    let trimmed = unit.trim();
    let near = BYTE_UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(trimmed));
    Err(match (trimmed, near) {
        ("", _) => "the size has no unit".to_owned(),
        (_, Some((name, _))) if trimmed.len() != unit.len() => {
            format!("there is a space before the unit {name}")
        }
        (_, Some((name, _))) => format!("unit {trimmed:?} is not accepted, did you mean {name}"),
        ("K" | "M" | "G" | "T" | "k" | "m" | "g" | "t", None) => {
            let letter = trimmed.to_ascii_uppercase();
            format!(
                "unit {trimmed:?} is not accepted, did you mean {letter}iB (1024) or {letter}B (1000)"
            )
        }
        (_, None) => format!("unit {} is not accepted", shown(trimmed)),
    })
}

/// The shortest exact text with a binary unit and at most one decimal; `parse_bytes` gives
/// the same number back.
pub(super) fn format_bytes(bytes: u64) -> String {
    for (name, unit) in BYTE_UNITS.iter().filter(|(name, _)| name.contains('i')) {
        let tenths = u128::from(bytes) * 10;
        let unit = u128::from(*unit);
        if tenths >= unit * 10 && tenths % unit == 0 {
            let tenths = tenths / unit;
            return match tenths % 10 {
                0 => format!("{}{name}", tenths / 10),
                tenth => format!("{}.{tenth}{name}", tenths / 10),
            };
        }
    }
    format!("{bytes}B")
}

/// A duration as policies write it, such as `90d`, `1h` or `1d12h`: whole numbers with `s`,
/// `m` (minutes), `h`, `d`, `w` or `y` (365 days), the larger unit first. The word `never` is
/// the caller's matter.
///
/// # Errors
/// A fragment that says what is wrong.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut seconds = 0u64;
    let mut rest = text;
    let mut units = DURATION_UNITS.iter();
    while !rest.is_empty() {
        let number_len = rest
            .find(|c: char| !c.is_ascii_digit())
            .ok_or("the number has no unit")?;
        let (number, after) = rest.split_at_checked(number_len).unwrap_or((rest, ""));
        let unit = after.chars().next().ok_or("the number has no unit")?;
        if number.is_empty() {
            return Err("a whole number must stand before each unit".to_owned());
        }
        let each = duration_unit(unit, &mut units)?;
        seconds = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(each))
            .and_then(|part| seconds.checked_add(part))
            .ok_or("the duration is too large")?;
        rest = after.get(unit.len_utf8()..).unwrap_or("");
    }
    if text.is_empty() {
        return Err("the duration is empty".to_owned());
    }
    Ok(Duration::from_secs(seconds))
}

/// Seconds of `unit`. `left` holds the units still allowed: it only moves on, so each unit
/// comes at most once and the larger first.
fn duration_unit(unit: char, left: &mut std::slice::Iter<'_, (char, u64)>) -> Result<u64, String> {
    if let Some((_, seconds)) = left.find(|(name, _)| *name == unit) {
        return Ok(*seconds);
    }
    if DURATION_UNITS.iter().any(|(name, _)| *name == unit) {
        return Err(format!("unit {unit:?} comes twice or after a smaller one"));
    }
    Err(match unit {
        'M' => "unit 'M' is not accepted: a month has no fixed length, write days \
                (\"30d\"); minutes are a lower-case m"
            .to_owned(),
        _ => format!("unit {unit:?} is not accepted"),
    })
}

/// The text with the largest single unit that divides the duration; weeks are not used.
/// `parse_duration` gives the same duration back.
pub(super) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    DURATION_UNITS
        .iter()
        .filter(|(name, _)| *name != 'w')
        .find(|(_, unit)| seconds >= *unit && seconds.is_multiple_of(*unit))
        .map_or_else(
            || format!("{seconds}s"),
            |(name, unit)| format!("{}{name}", seconds / unit),
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_in_both_bases() {
        for (text, bytes) in [
            ("512B", 512),
            ("256KiB", 262_144),
            ("256KB", 256_000),
            ("3.5MiB", 3_670_016),
            ("1.1MiB", 1_153_433),
            ("64MB", 64_000_000),
            ("1GiB", 1 << 30),
            ("0.125KB", 125),
            ("0B", 0),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn bad_sizes_say_what_is_meant() {
        for (text, part) in [
            ("256", "no unit"),
            ("256 KiB", "space"),
            ("256K", "did you mean KiB (1024) or KB (1000)"),
            ("256kib", "did you mean KiB"),
            ("256Kb", "did you mean KB"),
            ("1.MiB", "not a size"),
            (".5MiB", "not a size"),
            ("1.2.3MiB", "not a size"),
            ("1.2345MiB", "not a size"),
            ("MiB", "not a size"),
            ("99999999999TiB", "too large"),
            ("99999999999999999999999B", "too large"),
            ("5 parsecs", "not accepted"),
            ("-5KiB", "not accepted"),
            ("", "no unit"),
        ] {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn durations_are_read() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("5m", 300),
            ("1h", 3_600),
            ("90d", 7_776_000),
            ("2w", 1_209_600),
            ("7y", 220_752_000),
            ("1d12h", 129_600),
            ("1y2w3d4h5m6s", 33_019_506),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn bad_durations_say_what_is_meant() {
        for (text, part) in [
            ("", "empty"),
            ("90", "no unit"),
            ("d", "whole number"),
            ("3M", "lower-case m"),
            ("3D", "not accepted"),
            ("1.5h", "not accepted"),
            ("12h1d", "after a smaller one"),
            ("1h1h", "twice"),
            ("1d 12h", "whole number"),
            ("-1d", "whole number"),
            ("99999999999999999y", "too large"),
            ("99999999999999999999999s", "too large"),
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn texts_are_short() {
        assert_eq!(format_bytes(262_144), "256KiB");
        assert_eq!(format_bytes(3_670_016), "3.5MiB");
        assert_eq!(format_bytes(1_000), "1000B");
        assert_eq!(format_duration(Duration::from_secs(7_776_000)), "90d");
        assert_eq!(format_duration(Duration::from_secs(129_600)), "36h");
        assert_eq!(format_duration(Duration::ZERO), "0s");
    }

    proptest! {
        #[test]
        fn formatted_sizes_read_back(bytes in any::<u64>(), shift in 0u32..50) {
            for bytes in [bytes, (bytes >> 20) << (shift % 20), 1 << shift] {
                prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
            }
        }

        #[test]
        fn formatted_durations_read_back(seconds in any::<u64>(), unit in 0usize..6) {
            for seconds in [seconds, seconds / 1_000_000_000_000 * DURATION_UNITS[unit].1] {
                let duration = Duration::from_secs(seconds);
                prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC*", units in "[0-9.]{0,20}[smhdwyMKiB]{0,3}") {
            for text in [text, units] {
                let _ = (parse_bytes(&text), parse_duration(&text));
            }
        }
    }
}
