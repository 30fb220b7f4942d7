//! Settles what was found: overlaps become one, every place is replaced once, offsets lead back to the input.

use super::rule::Action;
use super::scan::{Candidate, Scanner};
use super::text::is_plain_word;

/// One place to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) rule: usize,
    pub(crate) action: Action,
}

/// Merges candidates into hits: overlapping ones become their union, so that no tail survives.
pub(crate) fn merge(
    text: &str,
    mut found: Vec<Candidate>,
    scanner: &Scanner,
    actions: &[Action],
) -> Vec<Hit> {
    drop_needless_joints(text, &mut found);
    let action = |rule: usize| actions.get(rule).copied().unwrap_or(Action::Label);
    found.retain(|c| action(c.rule) != Action::Allow && c.start < c.end);
    found.sort_by_key(|c| (c.start, std::cmp::Reverse(c.end)));
    let mut hits: Vec<(Hit, Candidate)> = Vec::new();
    for c in found {
        let (start, end) = (floor(text, c.start), ceil(text, c.end));
        let hit = Hit {
            start,
            end,
            rule: c.rule,
            action: action(c.rule),
        };
        match hits.last_mut() {
            Some((last, best)) if start < last.end => {
                last.end = last.end.max(end);
                let rank = |c: &Candidate| (scanner.rank(c.rule), c.end - c.start);
                let better = rank(&c) > rank(best);
                let reject = last.action == Action::Reject || hit.action == Action::Reject;
                if better && !(last.action == Action::Reject && hit.action != Action::Reject)
                    || (reject && last.action != Action::Reject)
                {
                    (last.rule, last.action) = (hit.rule, hit.action);
                    *best = c;
                }
                // A tag or the last digits say something only of a value that was read whole.
                if (best.start, best.end) != (last.start, last.end)
                    && matches!(last.action, Action::Pseudonym | Action::Last4)
                {
                    last.action = Action::Label;
                }
            }
            _ => hits.push((hit, c)),
        }
    }
    hits.into_iter().map(|(hit, _)| hit).collect()
}

/// A match over a line joint is not needed when the part before the joint is complete by itself
/// and what follows reads like a word or begins another secret.
fn drop_needless_joints(text: &str, found: &mut Vec<Candidate>) {
    if !found.iter().any(|c| c.joint > 0) {
        return;
    }
    let mut direct: Vec<(usize, usize)> = found
        .iter()
        .filter(|c| c.joint == 0)
        .map(|c| (c.start, c.end))
        .collect();
    direct.sort_unstable();
    found.retain(|c| {
        if c.joint == 0 {
            return true;
        }
        let from = direct.partition_point(|d| d.0 < c.start.saturating_sub(64));
        let near = || direct.iter().skip(from).take_while(|d| d.0 < c.end);
        let complete = near()
            .any(|d| d.1 > c.start && d.1 <= c.joint && d.1 + 200 > c.joint && d.0 <= c.start + 64);
        let another = near().any(|d| d.0 >= c.joint.saturating_sub(1) && d.0 < c.end);
        let tail = text.as_bytes().get(c.joint..c.end).unwrap_or(&[]);
        let digit = tail.iter().any(u8::is_ascii_digit);
        let last = matches!(
            text.as_bytes().get(c.end),
            None | Some(b'\n' | b'\r' | b'"' | b'\'' | b'`')
        );
        !complete || (!another && tail.len() >= 2 && (digit || (last && !is_plain_word(tail))))
    });
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&i| text.is_char_boundary(i))
        .unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|&i| text.is_char_boundary(i))
        .unwrap_or(text.len())
}

/// All replacements made so far, with the places of the input that they stand for.
#[derive(Default)]
pub(crate) struct Edits(Vec<Edit>);

#[derive(Clone, Copy)]
struct Edit {
    /// Bytes of the input.
    input: (usize, usize),
    /// Bytes of the output.
    output: (usize, usize),
    rule: usize,
    action: Action,
}

/// Bytes of the output that one or several hits replace, with the markers that they reach into.
struct Place<'h> {
    start: usize,
    end: usize,
    hits: &'h [Hit],
    rule: usize,
    action: Action,
}

impl Edits {
    /// Replaces `hits` in `text` (the output so far) and notes what that means for the input.
    pub(crate) fn apply(
        &mut self,
        text: &str,
        hits: &[Hit],
        marker: impl Fn(usize, Action, &str) -> String,
    ) -> String {
        let mut out = String::with_capacity(text.len());
        let mut next = Vec::with_capacity(self.0.len() + hits.len());
        let mut old = self.0.iter().copied().peekable();
        let mut at = 0usize;
        for place in self.places(hits) {
            while let Some(e) = old.next_if(|e| e.output.1 <= place.start) {
                next.push(shift(e, at, out.len()));
            }
            while old.next_if(|e| e.output.0 < place.end).is_some() {}
            out.push_str(text.get(at..place.start).unwrap_or(""));
            at = place.start;
            let start = out.len();
            for hit in place.hits {
                out.push_str(text.get(at..hit.start).unwrap_or(""));
                let value = text.get(hit.start..hit.end).unwrap_or("");
                out.push_str(&marker(hit.rule, hit.action, value));
                at = hit.end;
            }
            out.push_str(text.get(at..place.end).unwrap_or(""));
            at = place.end;
            next.push(Edit {
                input: (self.to_input(place.start), self.to_input(place.end)),
                output: (start, out.len()),
                rule: place.rule,
                action: place.action,
            });
        }
        for e in old {
            next.push(shift(e, at, out.len()));
        }
        out.push_str(text.get(at..).unwrap_or(""));
        self.0 = next;
        out
    }

    /// The hits by places. One that reaches into a marker makes a place with all of it: what is left
    /// of that marker in the text comes from the marker's place of the input, and no other.
    fn places<'h>(&self, hits: &'h [Hit]) -> Vec<Place<'h>> {
        let mut places: Vec<Place<'h>> = Vec::with_capacity(hits.len());
        let mut first = 0;
        for (at, hit) in hits.iter().enumerate() {
            let from = self.0.partition_point(|e| e.output.1 <= hit.start);
            let behind = self.0.get(from..).unwrap_or(&[]).iter();
            let (start, end) = behind
                .take_while(|e| e.output.0 < hit.end)
                .fold((hit.start, hit.end), |(start, end), e| {
                    (start.min(e.output.0), end.max(e.output.1))
                });
            match places.last_mut() {
                Some(last) if start < last.end => {
                    last.end = last.end.max(end);
                    last.hits = hits.get(first..=at).unwrap_or(&[]);
                }
                _ => {
                    first = at;
                    places.push(Place {
                        start,
                        end,
                        hits: std::slice::from_ref(hit),
                        rule: hit.rule,
                        action: hit.action,
                    });
                }
            }
        }
        places
    }

    /// The place of the input that byte `at` of the output came from; it lies in no marker.
    fn to_input(&self, at: usize) -> usize {
        let n = self.0.partition_point(|e| e.output.0 < at);
        match n.checked_sub(1).and_then(|n| self.0.get(n)) {
            None => at,
            Some(e) => e.input.1 + at.saturating_sub(e.output.1),
        }
    }

    /// The findings in order, with their lines.
    pub(crate) fn findings<T>(
        &self,
        text: &str,
        make: impl Fn(usize, Action, usize, usize, usize) -> T,
    ) -> Vec<T> {
        let mut line = 1;
        let mut at = 0;
        let bytes = text.as_bytes();
        self.0
            .iter()
            .map(|e| {
                let (start, end) = e.input;
                line += bytes
                    .get(at..start)
                    .map_or(0, |gone| gone.iter().filter(|&&b| b == b'\n').count());
                at = start.max(at);
                make(e.rule, e.action, line, start, end)
            })
            .collect()
    }
}

/// Moves an edit that lies behind byte `at` of the old output, which is byte `len` of the new one.
fn shift(e: Edit, at: usize, len: usize) -> Edit {
    let move_by = |x: usize| (x + len).saturating_sub(at);
    Edit {
        output: (move_by(e.output.0), move_by(e.output.1)),
        ..e
    }
}
