//! Fits a `view_range` to what there is, and says what is left out.

use std::fmt;

use super::error::EditError;

/// What a range counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The lines of a file.
    Lines,
    /// The rows of a listing.
    Rows,
}

impl Unit {
    pub(super) fn one(self) -> &'static str {
        match self {
            Unit::Lines => "line",
            Unit::Rows => "row",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Lines => "lines",
            Unit::Rows => "rows",
        })
    }
}

/// A range that fits: `1 <= first <= last <= total`, or `1, 0` when there is
/// nothing and no range was asked for.
pub(super) struct Fitted {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Says that the end was cut, if it was.
    pub(super) note: Option<String>,
}

pub(super) fn fit(range: Option<(i64, i64)>, total: u64, unit: Unit) -> Result<Fitted, EditError> {
    let Some((start, end)) = range else {
        return Ok(Fitted {
            first: 1,
            last: total,
            note: None,
        });
    };
    let refused = EditError::Range {
        start,
        end,
        total,
        unit,
    };
    let first = match u64::try_from(start) {
        Ok(first) if (1..=total).contains(&first) => first,
        _ => return Err(refused),
    };
    if end == -1 {
        return Ok(Fitted {
            first,
            last: total,
            note: None,
        });
    }
    match u64::try_from(end) {
        Ok(last) if last < first => Err(refused),
        Ok(last) if last > total => Ok(Fitted {
            first,
            last: total,
            note: Some(format!(
                "Note: view_range was cut to [{first}, {total}]; the last {} is {total}.",
                unit.one()
            )),
        }),
        Ok(last) => Ok(Fitted {
            first,
            last,
            note: None,
        }),
        Err(_) => Err(refused),
    }
}

/// The note on what a cap left out of a view that should have gone to `last`.
///
/// `next` is the first one that is not shown. The range to continue with ends
/// where the range that was asked for ends, so following the notes shows
/// exactly what was asked for.
pub(super) fn rest_note(next: u64, last: u64, total: u64, unit: Unit) -> String {
    format!(
        "Note: {unit} {next}-{last} of {total} are not shown. Continue with view_range [{next}, {last}]."
    )
}
