//! Times on the command line: written in UTC, read as a date, a date-time or a duration.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use strongroom::ClockState;
use strongroom::clock::UnixMillis;
use strongroom::policy::parse_duration;

use super::failure::{Exit, Failure, Stop};

/// What may be written as a moment.
pub const HELP: &str = "Write a date (2027-01-31), a date with time and offset (2027-01-31T18:00:00Z), or a duration from now on (90d; s, m for minutes, h, d, w, y)";

/// `2026-01-31T08:15:00Z`. What lies past the year 9999 is shown as its end.
pub fn utc(millis: UnixMillis) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A moment after `now`, as the operator writes it. A date counts whole: it is the end of
/// that day in UTC.
///
/// # Errors
/// What is wrong, and what to write.
pub fn parse_until(text: &str, now: UnixMillis) -> Result<UnixMillis, String> {
    let moment = if is_date(text) {
        end_of_day(text)?
    } else if text.contains([':', '-', 'T']) {
        let timestamp: Timestamp = text
            .parse()
            .map_err(|_| format!("it is no date and time with an offset. {HELP}"))?;
        millis(timestamp)?
    } else {
        let duration = parse_duration(text).map_err(|error| format!("{error}. {HELP}"))?;
        let duration = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let moment = now.saturating_add(duration);
        if moment > millis(Timestamp::MAX)? {
            return Err(format!("it ends after the year 9999. {HELP}"));
        }
        moment
    };
    if moment <= now {
        return Err(format!("{} has passed already", utc(moment)));
    }
    Ok(moment)
}

/// The moment that `option` names, as [`parse_until`] reads it.
///
/// # Errors
/// Two lines for the operator.
pub fn until(text: &str, now: UnixMillis, option: &str) -> Result<UnixMillis, Stop> {
    parse_until(text, now).map_err(|error| {
        let (what, next) = error.split_once(". ").unwrap_or((&error, HELP));
        let next = format!("{next}.");
        Failure::new(Exit::Usage, format!("read {option}: {what}"), next).into()
    })
}

/// Both times and what is wrong with them; `None` for a clock that is believed.
pub fn disbelief(clock: ClockState) -> Option<String> {
    let (wall, trusted, why) = match clock {
        ClockState::Behind { wall, trusted } => (wall, trusted, "that is more than 5 minutes back"),
        ClockState::Ahead { wall, trusted } => (wall, trusted, "that is more than 400 days ahead"),
        _ => return None,
    };
    Some(format!(
        "the clock is not believed: it shows {}, and the store was last used at {}; {why}",
        utc(wall),
        utc(trusted)
    ))
}

/// `believed`, `behind` or `ahead`.
pub fn clock_word(clock: ClockState) -> &'static str {
    match clock {
        ClockState::Trusted => "believed",
        ClockState::Behind { .. } => "behind",
        ClockState::Ahead { .. } => "ahead",
    }
}

/// The state, and both times where they differ too much.
pub fn clock_json(clock: ClockState) -> Value {
    let state = clock_word(clock);
    match clock {
        ClockState::Behind { wall, trusted } | ClockState::Ahead { wall, trusted } => {
            json!({ "state": state, "shows": utc(wall), "store": utc(trusted) })
        }
        _ => json!({ "state": state }),
    }
}

/// Whether it is written as `2027-01-31`. The parser of dates takes more than that.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

fn end_of_day(text: &str) -> Result<UnixMillis, String> {
    let date: Date = text
        .parse()
        .map_err(|_| format!("there is no such day. {HELP}"))?;
    date.tomorrow()
        .and_then(|next| TimeZone::UTC.to_timestamp(next.to_datetime(Time::midnight())))
        .map_err(|_| format!("it ends after the year 9999. {HELP}"))
        .and_then(millis)
}

/// In milliseconds since 1970.
pub fn millis(timestamp: Timestamp) -> Result<UnixMillis, String> {
    UnixMillis::try_from(timestamp.as_millisecond()).map_err(|_| "it is before 1970".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T00:00:00Z.
    const NOW: UnixMillis = 1_767_225_600_000;

    #[test]
    fn times_are_civil_dates_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds * 1_000 + 999), text);
        }
        assert!(utc(UnixMillis::MAX).starts_with("9999-12-"));
    }

    #[test]
    fn a_moment_is_a_date_a_date_time_or_a_duration() {
        for (text, moment) in [
            ("2026-01-01", "2026-01-02T00:00:00Z"),
            ("2028-02-29", "2028-03-01T00:00:00Z"),
            ("2026-12-31", "2027-01-01T00:00:00Z"),
            ("2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z"),
            ("2026-06-01T18:30:00+02:00", "2026-06-01T16:30:00Z"),
            ("90d", "2026-04-01T00:00:00Z"),
            ("1d12h", "2026-01-02T12:00:00Z"),
            ("30m", "2026-01-01T00:30:00Z"),
            ("2w", "2026-01-15T00:00:00Z"),
            ("1y", "2027-01-01T00:00:00Z"),
        ] {
            assert_eq!(
                parse_until(text, NOW).map(utc).as_deref(),
                Ok(moment),
                "{text}"
            );
        }
    }

    #[test]
    fn other_texts_say_what_to_write() {
        for (text, says) in [
            ("", "empty"),
            ("90", "no unit"),
            ("3M", "lower-case m"),
            ("90 d", "not accepted"),
            ("tomorrow", "whole number"),
            ("2026-02-30", "no such day"),
            ("2026-1-1", "no date and time"),
            ("2026-06-01T18:30:00", "with an offset"),
            ("2025-12-31", "has passed already"),
            ("1969-06-01T00:00:00Z", "before 1970"),
            ("0s", "has passed already"),
            ("9000y", "after the year 9999"),
            ("99999999999999999999y", "too large"),
            ("9999-12-31", "after the year 9999"),
        ] {
            let error = parse_until(text, NOW).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
