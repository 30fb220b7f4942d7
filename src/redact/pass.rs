//! One scan under way: every view's keyword hits, the rules run there, and the tests their matches must pass.

use regex::bytes::Regex;

use super::error::Refused;
use super::near::{NEAR, is_near};
use super::parse::Scene;
use super::placeholder;
use super::rule::{Boundary, RuleDef};
use super::scan::{Candidate, Rule, Scanner};
use super::text::{Text, is_random, is_token};
use super::view::{Kind, Views};

/// Bytes before and after a keyword in which a rule's regular expression is run.
const WINDOW: (usize, usize) = (160, 240);
/// Bytes after the keyword that begins a value.
const ANCHORED: usize = 4096;

/// One scan under way.
pub(super) struct Pass<'s> {
    scanner: &'s Scanner,
    pub(super) found: Vec<Candidate>,
    spans: Vec<(usize, usize)>,
    /// For each rule the end of the last window in the present view.
    done: Vec<usize>,
    /// For each rule the last keyword that got no window of its own, being well inside another's.
    owed: Vec<Option<(usize, usize)>>,
    /// The rules that have one, and some that had.
    owing: Vec<usize>,
    work: usize,
}

impl<'s> Pass<'s> {
    /// Begins a scan that may look at `work` bytes in all.
    pub(super) fn new(scanner: &'s Scanner, work: usize) -> Self {
        Self {
            scanner,
            found: Vec::new(),
            spans: Vec::new(),
            done: vec![0; scanner.rules.len()],
            owed: vec![None; scanner.rules.len()],
            owing: Vec::new(),
            work,
        }
    }

    /// Scans one view.
    ///
    /// # Errors
    /// When the work runs out or a rule does not compile.
    pub(super) fn run(&mut self, views: &Views<'_>, index: usize) -> Result<(), Refused> {
        let Some(view) = views.view(index) else {
            return Ok(());
        };
        let text = view.text();
        self.done.fill(0);
        let scanner = self.scanner;
        let mut marker_end = 0;
        let search = scanner.search().ok_or(Refused::NoSearch)?;
        for hit in search.find_overlapping_iter(text.0) {
            let slot = hit.pattern().as_usize();
            if slot == 0 {
                marker_end = scanner
                    .ids
                    .marker_len(text.cut(hit.start(), hit.start() + 128))
                    .map_or(marker_end, |n| hit.start() + n);
                continue;
            }
            if hit.start() < marker_end {
                continue;
            }
            for &rule in scanner.by_keyword.get(slot).map_or(&[][..], Vec::as_slice) {
                self.rule(text, rule, (hit.start(), hit.end()))?;
                self.keep(views, index, rule);
            }
        }
        for rule in std::mem::take(&mut self.owing) {
            self.pay(text, rule, usize::MAX)?;
            self.keep(views, index, rule);
        }
        if !scanner.numbers.rules.is_empty() {
            self.numbers(views, index, text)?;
        }
        Ok(())
    }

    /// Turns the spans just found into candidates of the raw text.
    fn keep(&mut self, views: &Views<'_>, index: usize, rule: usize) {
        let Some(view) = views.view(index) else {
            return;
        };
        while let Some((start, end)) = self.spans.pop() {
            let value = view.text().cut(start, end);
            if self.scanner.allow.contains(value) {
                continue;
            }
            if view.kind == Kind::Joined && !view.spans_change(start, end) {
                continue;
            }
            let (low, high) = views.to_raw(index, start, end);
            let joint = if view.kind == Kind::Joined {
                let piece = view.last_piece_start(start, end);
                // A value read by structure ends at its line; only a random one can have been wrapped.
                let parts = (view.text().cut(start, piece), view.text().cut(piece, end));
                if placeholder::is_placeholder(parts.0) {
                    continue;
                }
                let is_value = self.scanner.rank(rule) <= 1;
                if is_value && !(parts.0.len() >= 8 && is_random(parts.0) && is_random(parts.1)) {
                    continue;
                }
                views.to_raw(index, piece, end).0.max(1)
            } else {
                0
            };
            self.found.push(Candidate {
                start: low,
                end: high,
                rule,
                joint,
            });
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Refused> {
        self.work = self.work.checked_sub(bytes).ok_or(Refused::TooMuchWork)?;
        Ok(())
    }

    fn rule(&mut self, text: Text<'_>, index: usize, hit: (usize, usize)) -> Result<(), Refused> {
        let scanner = self.scanner;
        let Some(rule) = scanner.rules.get(index) else {
            return Ok(());
        };
        if let Some(parser) = rule.def.parser {
            self.spend(parser.cost())?;
            // What a parser read as a whole need not be read again from a later keyword in it.
            if self.done.get(index).is_some_and(|&done| hit.0 < done) {
                return Ok(());
            }
            let read = parser.run(
                Scene {
                    text,
                    ids: &scanner.ids,
                },
                hit,
                &mut self.spans,
            );
            if let Some(done) = self.done.get_mut(index) {
                *done = read.max(*done);
            }
            return Ok(());
        }
        if rule.anchored {
            // A letter or digit in front: the keyword is part of a longer word.
            if rule.def.boundary != Boundary::None && glued(text.before(hit.0), text.at(hit.0)) {
                return Ok(());
            }
            let window = text.cut(hit.0, hit.0 + ANCHORED);
            self.spend(64)?;
            let regex = rule.compiled().ok_or_else(|| broken(rule))?;
            let Some(m) = find(regex, window, 0) else {
                return Ok(());
            };
            self.spend(m.1.1)?;
            self.accept(text, rule, (hit.0 + m.1.0, hit.0 + m.1.1));
            return Ok(());
        }
        if !could_begin(text, &rule.def, hit) {
            return Ok(());
        }
        self.pay(text, index, hit.0)?;
        let done = self.done.get(index).copied().unwrap_or(0);
        let is_inside = hit.1 + WINDOW.1 / 2 < done;
        if let Some(owed) = self.owed.get_mut(index) {
            if is_inside && owed.is_none() {
                self.owing.push(index);
            }
            *owed = is_inside.then_some(hit);
        }
        if is_inside {
            return Ok(());
        }
        self.around(text, index, hit)
    }

    /// Opens the window of a keyword that got none, unless the next one's, at `next`, takes in
    /// what lies across the end of the last window.
    fn pay(&mut self, text: Text<'_>, index: usize, next: usize) -> Result<(), Refused> {
        let done = self.done.get(index).copied().unwrap_or(0);
        let owed = self.owed.get_mut(index).filter(|_| next > done);
        match owed.and_then(Option::take) {
            Some(hit) if done < text.len() => self.around(text, index, hit),
            _ => Ok(()),
        }
    }

    fn around(&mut self, text: Text<'_>, index: usize, hit: (usize, usize)) -> Result<(), Refused> {
        let Some(rule) = self.scanner.rules.get(index) else {
            return Ok(());
        };
        let (start, end) = clip(text, hit.0.saturating_sub(WINDOW.0), hit.1 + WINDOW.1, hit);
        if let Some(done) = self.done.get_mut(index) {
            *done = end;
        }
        self.window(text, rule, start, end)
    }

    fn window(
        &mut self,
        text: Text<'_>,
        rule: &Rule,
        start: usize,
        end: usize,
    ) -> Result<(), Refused> {
        self.spend(end - start)?;
        let regex = rule.compiled().ok_or_else(|| broken(rule))?;
        let window = text.cut(start, end);
        let mut at = 0;
        while let Some((whole, secret)) = find(regex, window, at) {
            let mut found = (start + secret.0, start + secret.1);
            if secret.1 == whole.1 && found.1 == end {
                // The window cut the value; it goes on to the end of its token.
                found.1 = text.skip(end, ANCHORED, is_in_token);
            }
            at = if self.accept(text, rule, found) {
                whole.1.max(at + 1)
            } else {
                whole.0.max(at) + 1
            };
        }
        Ok(())
    }

    /// Runs the rules for numbers at every cluster of digits.
    fn numbers(&mut self, views: &Views<'_>, index: usize, text: Text<'_>) -> Result<(), Refused> {
        let scanner = self.scanner;
        let mut wanted = Vec::new();
        let mut i = 0;
        while i < text.len() {
            if !text.at(i).is_ascii_digit() {
                i += 1;
                continue;
            }
            let end = text.skip(i, 80, |b| {
                b.is_ascii_digit()
                    || b.is_ascii_uppercase()
                    || matches!(b, b' ' | b'-' | b'.' | b'/' | b'(' | b')' | b'+')
            });
            let count = text
                .cut(i, end)
                .iter()
                .filter(|b| b.is_ascii_digit())
                .count();
            if count >= 4 {
                let low = text.back(i, 12, |b| b.is_ascii_graphic());
                let low = if text.before(low) == b' ' {
                    text.back(low - 1, 3, |b| b.is_ascii_uppercase())
                } else {
                    low
                };
                let high = end + 4;
                // A match that reaches the end of the window goes on to the end of its token.
                let last = text.skip(high, ANCHORED, is_in_token);
                scanner
                    .numbers
                    .near(text.cut(low.saturating_sub(NEAR), last + NEAR), &mut wanted);
                for (&number, &is_wanted) in scanner.numbers.rules.iter().zip(&wanted) {
                    let Some(rule) = scanner.rules.get(number) else {
                        continue;
                    };
                    let (least, most) = rule.def.digits.unwrap_or((0, 0));
                    if is_wanted && count >= least && most > 0 {
                        self.window(text, rule, low, high)?;
                        self.keep(views, index, number);
                    }
                }
            }
            i = end.max(i + 1);
        }
        Ok(())
    }

    /// Puts a match to the tests that its rule names; keeps it when it passes.
    fn accept(&mut self, text: Text<'_>, rule: &Rule, span: (usize, usize)) -> bool {
        let (start, mut end) = span;
        if start >= end {
            return false;
        }
        if !bounded(text, rule.def.boundary, start) {
            return false;
        }
        let value = text.cut(start, end);
        // A part of a marker is no value.
        let ids = &self.scanner.ids;
        let marker = ids.marker_len(text.cut(start, start + 128));
        if marker.is_some_and(|n| end <= start + n) {
            return false;
        }
        if rule.open_end {
            if glued(text.before(end), text.at(end)) {
                end = text.skip(end, 512, |b| {
                    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
                });
            }
        } else if !bounded(text, rule.def.boundary, end) {
            return false;
        }
        if rule.def.validator.is_some_and(|v| !v.passes(value)) {
            return false;
        }
        if rule.def.class == "secret"
            && (placeholder::is_placeholder(value)
                || (!rule.anchored && placeholder::is_reference(value, true))
                || self.scanner.ids.is_all_markers(value))
        {
            return false;
        }
        if !rule.def.near.is_empty() && !is_near(text, rule, start, end) {
            return false;
        }
        let end = if rule.anchored {
            text.back(end, 3, |b| matches!(b, b'.' | b',' | b':'))
        } else {
            end
        };
        self.spans.push((start, end));
        true
    }
}

fn is_in_token(b: u8) -> bool {
    is_token(b) || b == b'.'
}

fn broken(rule: &Rule) -> Refused {
    Refused::BrokenRule {
        rule: rule.def.id.clone(),
    }
}

/// The next match in `window` from `at`: the whole of it, and the group `secret`.
fn find(regex: &Regex, window: &[u8], at: usize) -> Option<((usize, usize), (usize, usize))> {
    if at > window.len() {
        return None;
    }
    if regex.captures_len() == 1 {
        let m = regex.find_at(window, at)?;
        return Some(((m.start(), m.end()), (m.start(), m.end())));
    }
    let m = regex.captures_at(window, at)?;
    let whole = m.get(0)?;
    let secret = m.name("secret").or_else(|| m.get(0))?;
    Some(((whole.start(), whole.end()), (secret.start(), secret.end())))
}

/// Keeps a window from reaching over the gap between two regions of a derived text.
pub(super) fn clip(
    text: Text<'_>,
    start: usize,
    end: usize,
    hit: (usize, usize),
) -> (usize, usize) {
    let low = text
        .cut(start, hit.0)
        .iter()
        .rposition(|&b| b == 0)
        .map_or(start, |n| start + n + 1);
    let high = text
        .cut(hit.1, end)
        .iter()
        .position(|&b| b == 0)
        .map_or(end.min(text.len()), |n| hit.1 + n);
    (low, high)
}

/// What can be said of a keyword before the regular expression runs.
fn could_begin(text: Text<'_>, def: &RuleDef, hit: (usize, usize)) -> bool {
    if def.whole_word && glued(text.before(hit.1), text.at(hit.1)) {
        return false;
    }
    let before = text.cut(hit.0.saturating_sub(def.digit_before), hit.0);
    def.digit_before == 0 || before.iter().any(u8::is_ascii_digit)
}

fn glued(a: u8, b: u8) -> bool {
    a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric()
}

/// A run of base64 goes this far without a slash more often than the name of a directory does.
const NAME: usize = 14;

/// Whether a match may begin (or end) at `at`.
fn bounded(text: Text<'_>, boundary: Boundary, at: usize) -> bool {
    let (a, b) = (text.before(at), text.at(at));
    match boundary {
        Boundary::None => true,
        Boundary::Token => !glued(a, b),
        Boundary::Base64 => {
            let inside = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'_');
            let part = |c: u8| inside(c) || c == b'/';
            // A slash with a short name on its far side is a path's, not the value's.
            let path = (a == b'/' && at - 1 - text.back(at - 1, NAME, inside) < NAME)
                || (b == b'/' && text.skip(at + 1, NAME, inside) - at <= NAME);
            path || !(part(a) && part(b))
        }
    }
}
