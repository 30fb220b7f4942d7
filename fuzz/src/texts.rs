//! Texts of few tokens, so that lines, hits and ends meet.

use arbitrary::{Arbitrary, Result, Unstructured};

const TOKENS: &[&str] = &[
    "a",
    "b",
    "aa",
    "ab",
    "x",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "é",
    "e\u{301}",
    "日本",
    "👩",
    "\u{2028}",
    "\u{85}",
    "\u{b}",
    "\u{feff}",
    "\t",
    "     1\t",
    "Note: ",
    "Note: lines 1-2 of 3 are not shown.",
    "4.0K\t/memories/x",
    "Here's the content of /memories/a with line numbers:",
    "999999",
    "\0",
    "\u{1b}[2J",
];

const TOKENS_MAX: usize = 40;

/// A text for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub String);

impl<'a> Arbitrary<'a> for Text {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut text = String::new();
        let count = u.int_in_range(0..=TOKENS_MAX)?;
        for _ in 0..count {
            if u.is_empty() {
                break;
            }
            match u.int_in_range(0..=31)? {
                0 => text.push(char::arbitrary(u)?),
                1 => text.push_str(&"x".repeat(u.int_in_range(1..=200)?)),
                2 => text.push_str(&"a\n".repeat(u.int_in_range(1..=60)?)),
                _ => text.push_str(u.choose(TOKENS)?),
            }
        }
        Ok(Self(text))
    }
}

/// An edit or a view of a text.
#[derive(Debug)]
pub struct Edit {
    /// The text before.
    pub text: String,
    /// What stands in it, mostly.
    pub old: String,
    /// What comes in.
    pub new: String,
    /// A line to insert after.
    pub line: i64,
    /// What to show.
    pub range: Option<(i64, i64)>,
    /// How much to show.
    pub chars_max: usize,
}

impl<'a> Arbitrary<'a> for Edit {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let Text(text) = Text::arbitrary(u)?;
        let chars: Vec<char> = text.chars().collect();
        let old = if u.ratio(3, 4)? && !chars.is_empty() {
            let from = u.int_in_range(0..=chars.len() - 1)?;
            let count = u.int_in_range(1..=12)?;
            chars.iter().skip(from).take(count).collect()
        } else {
            Text::arbitrary(u)?.0
        };
        let Text(new) = Text::arbitrary(u)?;
        Ok(Self {
            line: near_line(u, &text)?,
            range: match u.ratio(1, 2)? {
                true => Some(near_range(u, &text)?),
                false => None,
            },
            chars_max: *u.choose(&[0, 1, 5, 20, 100, 16_000, usize::MAX])?,
            text,
            old,
            new,
        })
    }
}

/// Mostly lines that are there.
fn near_range(u: &mut Unstructured<'_>, text: &str) -> Result<(i64, i64)> {
    let lines = text.matches('\n').count() as i64;
    let start = match u.ratio(7, 8)? {
        true => u.int_in_range(1..=lines.max(1))?,
        false => near_line(u, text)?,
    };
    let end = match u.ratio(7, 8)? {
        true => start.saturating_add(u.int_in_range(0..=5)?),
        false => near_line(u, text)?,
    };
    Ok((start, end))
}

/// A line number, mostly of a line that is there.
fn near_line(u: &mut Unstructured<'_>, text: &str) -> Result<i64> {
    if u.ratio(1, 12)? {
        return i64::arbitrary(u);
    }
    let lines = text.matches('\n').count() as i64;
    u.int_in_range(-1..=lines + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;
    use strongroom::edit;

    #[test]
    fn edits_meet_what_is_there() {
        let count = 20_000;
        let (mut replaced, mut inserted, mut shown) = (0, 0, 0);
        for input in built::<Edit>(count, 160) {
            replaced += usize::from(edit::str_replace(&input.text, &input.old, &input.new).is_ok());
            inserted += usize::from(edit::insert(&input.text, input.line, &input.new).is_ok());
            shown +=
                usize::from(edit::number_lines(&input.text, input.range, input.chars_max).is_ok());
        }
        let percent = |n: usize| n as f64 * 100.0 / count as f64;
        println!(
            "{:.1} % replaced, {:.1} % inserted, {:.1} % shown",
            percent(replaced),
            percent(inserted),
            percent(shown)
        );
        assert!(percent(replaced) > 15.0 && percent(inserted) > 40.0 && percent(shown) > 30.0);
    }
}
