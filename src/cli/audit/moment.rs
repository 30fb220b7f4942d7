//! Moments in the past, as `audit show` takes them.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use strongroom::clock::UnixMillis;
use strongroom::policy::parse_duration;

use crate::cli::failure::{Exit, Failure, Stop};
use crate::cli::time::millis;

const HELP: &str = "Write a date (2026-01-31), a date with time and offset (2026-01-31T18:00:00Z), or how long ago (90d; s, m for minutes, h, d, w, y).";

/// Where a date that is written without a time stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Day {
    /// Its first moment.
    Begin,
    /// The first moment after it.
    End,
}

/// The moment that `text` after `option` names.
pub fn parse(option: &str, text: &str, day: Day) -> Result<UnixMillis, Stop> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    moment(text, day, now)
        .map_err(|what| Failure::new(Exit::Usage, format!("read {option}: {what}"), HELP).into())
}

fn moment(text: &str, day: Day, now: UnixMillis) -> Result<UnixMillis, String> {
    if is_date(text) {
        let no_day = |_| "there is no such day".to_owned();
        let date: Date = text.parse().map_err(no_day)?;
        let date = match day {
            Day::Begin => date,
            Day::End => date.tomorrow().map_err(no_day)?,
        };
        let at = date.to_datetime(Time::midnight());
        return millis(TimeZone::UTC.to_timestamp(at).map_err(no_day)?);
    }
    if text.contains([':', '-', 'T']) {
        let timestamp: Timestamp = text
            .parse()
            .map_err(|_| "it is no date and time with an offset".to_owned())?;
        return millis(timestamp);
    }
    let ago = u64::try_from(parse_duration(text)?.as_millis()).unwrap_or(u64::MAX);
    Ok(now.saturating_sub(ago))
}

/// Whether it is written as `2027-01-31`. The parser of dates takes more than that.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::time::utc;

    /// 2026-01-01T00:00:00Z.
    const NOW: UnixMillis = 1_767_225_600_000;

    #[test]
    fn a_moment_is_a_date_a_date_time_or_so_long_ago() {
        for (text, day, expected) in [
            ("2025-12-31", Day::Begin, "2025-12-31T00:00:00Z"),
            ("2025-12-31", Day::End, "2026-01-01T00:00:00Z"),
            ("2024-02-29", Day::End, "2024-03-01T00:00:00Z"),
            (
                "2025-06-01T18:30:00+02:00",
                Day::End,
                "2025-06-01T16:30:00Z",
            ),
            ("24h", Day::Begin, "2025-12-31T00:00:00Z"),
            ("1d12h", Day::End, "2025-12-30T12:00:00Z"),
            ("900y", Day::Begin, "1970-01-01T00:00:00Z"),
        ] {
            let moment = moment(text, day, NOW).map(utc);
            assert_eq!(moment.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_say_what_is_wrong() {
        for (text, says) in [
            ("", "empty"),
            ("90", "no unit"),
            ("3M", "lower-case m"),
            ("yesterday", "whole number"),
            ("2026-02-30", "no such day"),
            ("9999-12-31", "no such day"),
            ("2026-1-1", "no date and time"),
            ("2026-06-01T18:30:00", "with an offset"),
            ("1969-06-01T00:00:00Z", "before 1970"),
        ] {
            let error = moment(text, Day::End, NOW).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
