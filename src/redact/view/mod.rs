//! Texts derived from the raw one (folded, unescaped, joined, decoded), each with a map back to its parent.

mod clean;
mod decode;
mod fold;
mod join;
mod survey;

use super::text::Text;
use survey::Survey;

/// Bytes of context that a region of a derived text keeps on each side of what changed.
const CONTEXT: usize = 320;
/// How far a region's edge moves outward to avoid cutting a token.
const EDGE: usize = 800;
/// How many derivations may lie between a view and the raw text.
const DEPTH_MAX: u8 = 5;
/// How many of them may be decodings (base64, hex).
const DECODE_DEPTH_MAX: u8 = 2;

/// How a view came about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The text itself.
    Raw,
    /// Folded and unescaped.
    Clean,
    /// Wrapped lines and split literals put together.
    Joined,
    /// Decoded from base64 or hex.
    Decoded,
}

/// One text to be scanned. Offsets are bytes.
pub(crate) struct View<'a> {
    text: std::borrow::Cow<'a, [u8]>,
    pieces: Vec<Piece>,
    parent: usize,
    pub(crate) kind: Kind,
    depth: u8,
    decodes: u8,
}

/// A stretch of a view that starts at `at` and stands for `from..from + span` of the parent.
#[derive(Clone, Copy)]
struct Piece {
    at: usize,
    from: usize,
    span: usize,
    /// Whether bytes map one to one; else every byte stands for the whole span.
    linear: bool,
}

/// Too much text would have to be derived.
pub(crate) struct TooMuch;

impl View<'_> {
    pub(crate) fn text(&self) -> Text<'_> {
        Text(&self.text)
    }

    /// Whether `start..end` reaches over a place where something was left out or replaced.
    pub(crate) fn spans_change(&self, start: usize, end: usize) -> bool {
        let first = self.pieces.partition_point(|p| p.at <= start);
        let last = self.pieces.partition_point(|p| p.at < end);
        last > first
    }

    /// Where the part of `start..end` after the last change begins.
    pub(crate) fn last_piece_start(&self, start: usize, end: usize) -> usize {
        let last = self.pieces.partition_point(|p| p.at < end);
        let piece = last.checked_sub(1).and_then(|i| self.pieces.get(i));
        piece.map_or(start, |p| p.at.max(start))
    }

    fn to_parent(&self, start: usize, end: usize) -> (usize, usize) {
        let find = |i: usize| {
            let n = self.pieces.partition_point(|p| p.at <= i);
            n.checked_sub(1).and_then(|n| self.pieces.get(n)).copied()
        };
        let low = find(start).map_or(0, |p| {
            if p.linear {
                p.from + (start - p.at)
            } else {
                p.from
            }
        });
        let last = end.saturating_sub(1).max(start);
        let high = find(last).map_or(low, |p| {
            if p.linear {
                p.from + (last - p.at) + 1
            } else {
                p.from + p.span
            }
        });
        (low.min(high), high.max(low))
    }
}

/// All views of one text, made one after the other.
pub(crate) struct Views<'a> {
    all: Vec<View<'a>>,
    derived: usize,
    derived_max: usize,
}

impl<'a> Views<'a> {
    /// Begins with the raw text alone. `derived_max`: bytes that all derived texts together may take.
    pub(crate) fn new(raw: &'a [u8], derived_max: usize) -> Self {
        let raw = View {
            text: raw.into(),
            pieces: Vec::new(),
            parent: 0,
            kind: Kind::Raw,
            depth: 0,
            decodes: 0,
        };
        Self {
            all: vec![raw],
            derived: 0,
            derived_max,
        }
    }

    pub(crate) fn view(&self, i: usize) -> Option<&View<'a>> {
        self.all.get(i)
    }

    /// Derives what view `i` gives rise to.
    ///
    /// # Errors
    /// When the derived texts together exceed their limit.
    pub(crate) fn derive(&mut self, i: usize) -> Result<(), TooMuch> {
        let Some(view) = self.all.get(i) else {
            return Ok(());
        };
        if view.depth >= DEPTH_MAX {
            return Ok(());
        }
        let survey = Survey::of(view.text());
        if survey.is_empty() {
            return Ok(());
        }
        let mut made = Vec::new();
        if !survey.regions.is_empty() {
            made.push((Kind::Clean, clean::build(view.text(), &survey.regions)));
        }
        if !survey.cuts.is_empty() && view.kind != Kind::Joined {
            made.push((Kind::Joined, join::build(view.text(), &survey.cuts)));
        }
        if !survey.runs.is_empty() && view.decodes < DECODE_DEPTH_MAX {
            made.push((Kind::Decoded, decode::build(view.text(), &survey.runs)));
        }
        let (depth, decodes) = (view.depth + 1, view.decodes);
        for (kind, draft) in made {
            if draft.text.is_empty() {
                continue;
            }
            self.derived += draft.text.len();
            if self.derived > self.derived_max {
                return Err(TooMuch);
            }
            let decodes = decodes + u8::from(kind == Kind::Decoded);
            self.all.push(View {
                text: draft.text.into(),
                pieces: draft.pieces,
                parent: i,
                kind,
                depth,
                decodes,
            });
        }
        Ok(())
    }

    /// The raw bytes that `start..end` of view `i` stands for.
    pub(crate) fn to_raw(&self, i: usize, start: usize, end: usize) -> (usize, usize) {
        let (mut i, mut start, mut end) = (i, start, end);
        while let Some(view) = self.all.get(i) {
            if view.kind == Kind::Raw {
                break;
            }
            (start, end) = view.to_parent(start, end);
            i = view.parent;
        }
        (start, end)
    }
}

/// A derived text in the making.
#[derive(Default)]
struct Draft {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

/// What stands between two regions of a derived text: nothing reaches across a NUL line.
const GAP: &[u8] = b"\n\0\n";

impl Draft {
    /// Takes over `start..end` of the parent as it is.
    fn copy(&mut self, parent: Text<'_>, start: usize, end: usize) {
        if start >= end {
            return;
        }
        let at = self.text.len();
        let goes_on = self
            .pieces
            .last()
            .is_some_and(|p| p.linear && p.from + (at - p.at) == start);
        if !goes_on {
            self.pieces.push(Piece {
                at,
                from: start,
                span: end - start,
                linear: true,
            });
        }
        self.text.extend_from_slice(parent.cut(start, end));
    }

    /// Puts `bytes` in place of `start..end` of the parent.
    fn put(&mut self, bytes: &[u8], start: usize, end: usize) {
        if bytes.is_empty() {
            return;
        }
        self.pieces.push(Piece {
            at: self.text.len(),
            from: start,
            span: end - start,
            linear: false,
        });
        self.text.extend_from_slice(bytes);
    }

    fn gap(&mut self, at: usize) {
        if !self.text.is_empty() {
            self.put(GAP, at, at);
        }
    }
}

/// Adds the neighbourhood of `start..end` to `regions`, joining it with the last where they meet.
///
/// That is its line and the one before, cut off `CONTEXT` bytes away.
fn add_region(regions: &mut Vec<(usize, usize)>, text: Text<'_>, start: usize, end: usize) {
    if let Some(last) = regions.last_mut()
        && start <= last.1
    {
        if end > last.1
            || (last.1 - end < CONTEXT && text.before(last.1) != b'\n' && text.at(last.1) != b'\n')
        {
            last.1 = far_edge(text, end);
        }
        return;
    }
    let line = text.line_start(start, CONTEXT);
    let low = text.line_start(line.saturating_sub(1), CONTEXT / 2);
    // A region that begins or ends inside a long token would make a false edge; it goes on to the next space.
    let low = text.back(low, EDGE, |b| !b.is_ascii_whitespace());
    let high = far_edge(text, end);
    match regions.last_mut() {
        Some(last) if low <= last.1 => last.1 = high.max(last.1),
        _ => regions.push((low, high)),
    }
}

fn far_edge(text: Text<'_>, end: usize) -> usize {
    let at = text.line_end(end, CONTEXT);
    text.skip(at, EDGE, |b| !b.is_ascii_whitespace())
}
