//! Builds paths out of tokens that matter to the path guard.

use arbitrary::{Arbitrary, Result, Unstructured};

/// A raw path for the guard; of those built from random bytes, about half are accepted.
#[derive(Debug)]
pub struct RawPath(pub String);

const TOKENS_MAX: usize = 48;

const PLAIN: &[&str] = &[
    "a",
    "b.md",
    "notes",
    "v1.2",
    ".git",
    "_",
    "-",
    "x y",
    "é",
    "e\u{301}",
    "日本",
    "\u{1112}\u{1161}\u{11ab}",
    "\u{958}",
    "👨\u{200d}👩",
    "❤\u{fe0f}",
    "1\u{fe0f}\u{20e3}",
    "50%",
    "%zz",
    "(1)",
    "~",
];

const HOSTILE: &[&str] = &[
    ".",
    "..",
    "...",
    "/../",
    "..;x",
    ";",
    " ",
    ":",
    "*",
    "?",
    "\"",
    "<",
    ">",
    "|",
    "\\",
    "\0",
    "\n",
    "\t",
    "\u{7f}",
    "\u{85}",
    "%",
    "%2",
    "%2e",
    "%2F",
    "%5c",
    "%25",
    "%3a",
    "%00",
    "%%32%65",
    "%u002e",
    "%ud800",
    "%u",
    "%41",
    "%34%31",
    "%c0%af",
    "%e2%80%a4",
    "%e2",
    "%ac",
    "%f0",
    "%ff",
    "2e",
    "u002f",
    "\u{301}",
    "\u{338}",
    "\u{20dd}",
    "\u{344}",
    "\u{903}",
    "\u{37e}",
    "\u{212a}",
    "\u{2329}",
    "\u{fe0f}",
    "\u{fe00}",
    "\u{200d}",
    "👩",
    "\u{200b}",
    "\u{202e}",
    "\u{feff}",
    "\u{a0}",
    "\u{2028}",
    "\u{2024}",
    "\u{2026}",
    "\u{ff0f}",
    "\u{29f5}",
    "\u{ff05}",
    "\u{a789}",
    "\u{e000}",
    "\u{fdd0}",
    "\u{e0041}",
    "\u{378}",
    "nul",
    "CON",
    "com1",
    "lpt\u{b9}",
    "clock$",
    "con\u{131}n$",
    "/memories",
];

impl<'a> Arbitrary<'a> for RawPath {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut path = u.choose(&["/memories/"; 15])?.to_string();
        if u.ratio(1, 16)? {
            path = u
                .choose(&[
                    "",
                    "/memories",
                    "/memoriesX",
                    "/",
                    "memories/",
                    "//memories/",
                ])?
                .to_string();
        }
        // How many hostile tokens this path may have; one among plain ones is what tests a rule.
        let mut hostile_left = *u.choose(&[0, 0, 0, 1, 1, 2, 4, TOKENS_MAX])?;
        for _ in 0..TOKENS_MAX {
            if u.is_empty() {
                break;
            }
            match u.int_in_range(0..=9)? {
                0..=1 => path.push('/'),
                2..=3 if hostile_left > 0 => {
                    path.push_str(u.choose(HOSTILE)?);
                    hostile_left -= 1;
                }
                4 if hostile_left > 0 => {
                    path.push(char::arbitrary(u)?);
                    hostile_left -= 1;
                }
                5 if hostile_left > 0 => {
                    path.push_str(&"x".repeat(u.int_in_range(1..=300)?));
                    hostile_left -= 1;
                }
                _ => path.push_str(u.choose(PLAIN)?),
            }
        }
        Ok(Self(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::built;
    use strongroom::path::Guard;

    #[test]
    fn at_least_three_in_ten_built_paths_are_accepted() {
        let count = 20_000;
        let guard = Guard::new();
        let mut accepted: Vec<_> = built(count, 96)
            .filter_map(|RawPath(raw)| guard.check(&raw).ok())
            .collect();
        let ratio = accepted.len() as f64 / count as f64;
        accepted.sort();
        accepted.dedup();
        let distinct = accepted.len();
        println!("{:.1} % accepted, {distinct} distinct", ratio * 100.0);
        assert!((0.3..0.8).contains(&ratio), "{ratio}");
        assert!(distinct > count / 5, "{distinct} distinct");
    }
}
