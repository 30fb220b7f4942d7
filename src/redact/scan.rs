//! Scans all views of a text: one keyword pass each, then the rules whose keywords were hit.

use std::collections::HashSet;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, StartKind};
use regex::bytes::{Regex, RegexBuilder};

use super::error::{RedactError, Refused};
use super::example;
use super::marker::{self, Ids};
use super::parse::Scene;
use super::placeholder;
use super::rule::{Boundary, RuleDef};
use super::text::{Text, is_random};
use super::view::{Kind, Views};

/// Bytes before and after a keyword in which a rule's regular expression is run.
const WINDOW: (usize, usize) = (160, 240);
/// Bytes after the keyword that begins a value.
const ANCHORED: usize = 4096;
/// Bytes around a value in which one of the rule's `near` words must stand.
const NEAR: usize = 80;
/// Size limit of a compiled regular expression, in bytes.
const REGEX_SIZE_MAX: usize = 256 << 10;
/// Most derived text, as a multiple of the input and in bytes beside it.
const DERIVED: (usize, usize) = (6, 1 << 16);
/// Most bytes that rules and parsers may be shown in one text, as a multiple of the input and beside it.
const WORK: (usize, usize) = (400, 32 << 20);

/// A place where a rule found something, in bytes of the raw text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) rule: usize,
    /// Where the part after the last line joint begins; 0 when it crosses none.
    pub(crate) joint: usize,
}

/// A rule ready to run.
pub(crate) struct Rule {
    pub(crate) def: RuleDef,
    regex: OnceLock<Option<Regex>>,
    /// The value begins with the keyword, so the regular expression runs from there only.
    anchored: bool,
    /// A match may go on to the end of its token: the keyword alone tells the kind.
    open_end: bool,
}

/// All rules with their one keyword search.
pub(crate) struct Scanner {
    rules: Vec<Rule>,
    search: AhoCorasick,
    by_keyword: Vec<Vec<usize>>,
    by_number: Vec<usize>,
    ids: Ids,
    allow: HashSet<Vec<u8>>,
}

impl Scanner {
    pub(crate) fn new(
        defs: Vec<RuleDef>,
        ids: Ids,
        allow: HashSet<Vec<u8>>,
    ) -> Result<Self, RedactError> {
        let mut keywords: Vec<Vec<u8>> = vec![marker::OPEN.to_vec()];
        let mut by_keyword: Vec<Vec<usize>> = vec![Vec::new()];
        let mut seen = std::collections::HashMap::new();
        let mut by_number = Vec::new();
        for (i, def) in defs.iter().enumerate() {
            for word in &def.keywords {
                let word = word.to_ascii_lowercase().into_bytes();
                let slot = *seen.entry(word.clone()).or_insert_with(|| {
                    keywords.push(word);
                    by_keyword.push(Vec::new());
                    by_keyword.len() - 1
                });
                if let Some(list) = by_keyword.get_mut(slot)
                    && !list.contains(&i)
                {
                    list.push(i);
                }
            }
            if def.digits.is_some() {
                by_number.push(i);
            }
        }
        let search = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Unanchored)
            .kind(Some(AhoCorasickKind::DFA))
            .build(keywords)
            .map_err(|_| RedactError::TooManyKeywords)?;
        let rules = defs.into_iter().map(Rule::new).collect();
        Ok(Self {
            rules,
            search,
            by_keyword,
            by_number,
            ids,
            allow,
        })
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Which of two rules names a value better: a format beats a context, a context a structure.
    pub(crate) fn rank(&self, rule: usize) -> u8 {
        self.rules.get(rule).map_or(0, |r| {
            match (&r.def.regex, r.anchored, r.def.near.is_empty()) {
                (Some(_), true, _) => 4,
                (Some(_), false, true) => 3,
                (Some(_), false, false) => 2,
                (None, ..)
                    if matches!(
                        r.def.parser,
                        Some(
                            super::parse::Parser::PrivateKey | super::parse::Parser::PrivateKeyTail
                        )
                    ) =>
                {
                    5
                }
                (None, ..) if r.def.parser == Some(super::parse::Parser::PasswordProse) => 0,
                _ => 1,
            }
        })
    }

    /// Compiles the rule `id`, if it has not been yet.
    pub(crate) fn compile(&self, id: &str) -> Result<(), String> {
        let Some(rule) = self.rules.iter().find(|r| r.def.id == id) else {
            return Ok(());
        };
        if rule.def.regex.is_some() && rule.compiled().is_none() {
            return Err(
                "the regular expression does not compile, or is larger than 256 KiB".to_owned(),
            );
        }
        Ok(())
    }

    /// Runs the rule's examples through the whole engine, counting this rule alone.
    pub(crate) fn run_examples(&self, def: &RuleDef) -> Result<(), RedactError> {
        let finds = |text: &str| {
            let found = self
                .scan(text.as_bytes())
                .map_err(|e| def.error(e.to_string()))?;
            let ours = |c: &Candidate| self.rules.get(c.rule).is_some_and(|r| r.def.id == def.id);
            Ok(found.iter().any(ours))
        };
        for (n, text) in def.examples.iter().enumerate() {
            if !finds(&example::expand(text, 1))? {
                return Err(def.error(format!("example {} is not found", n + 1)));
            }
        }
        for (n, text) in def.negative_examples.iter().enumerate() {
            if finds(&example::expand(text, 1))? {
                return Err(def.error(format!("negative example {} is found", n + 1)));
            }
        }
        Ok(())
    }

    /// Everything that the rules find in `text` and in what is derived from it.
    ///
    /// # Errors
    /// When a limit is exceeded or a rule does not compile.
    pub(crate) fn scan(&self, text: &[u8]) -> Result<Vec<Candidate>, Refused> {
        let derived_max = text.len() * DERIVED.0 + DERIVED.1;
        let mut views = Views::new(text, derived_max);
        let mut pass = Pass {
            scanner: self,
            found: Vec::new(),
            spans: Vec::new(),
            done: vec![0; self.rules.len()],
            work: text.len() * WORK.0 + WORK.1,
        };
        let mut i = 0;
        while views.view(i).is_some() {
            pass.run(&views, i)?;
            views.derive(i).map_err(|_| Refused::TooMuchDerived {
                bytes_max: derived_max,
            })?;
            i += 1;
        }
        Ok(pass.found)
    }
}

impl Rule {
    fn new(def: RuleDef) -> Self {
        let lead = def.regex.as_deref().map(literal_lead).unwrap_or_default();
        let anchored = !def.keywords.is_empty()
            && def.digits.is_none()
            && def.keywords.iter().all(|k| lead.starts_with(k.as_str()))
            && !lead.is_empty();
        let telling = |k: &String| k.len() >= 4 && k.bytes().any(|b| !b.is_ascii_alphanumeric());
        let open_end =
            anchored && def.keywords.iter().all(telling) && def.boundary == Boundary::Token;
        Self {
            def,
            regex: OnceLock::new(),
            anchored,
            open_end,
        }
    }

    fn compiled(&self) -> Option<&Regex> {
        let compile = || {
            let source = self.def.regex.as_deref()?;
            let source = if self.anchored {
                format!(r"\A(?:{source})")
            } else {
                source.to_owned()
            };
            let build = |unicode| {
                let mut builder = RegexBuilder::new(&source);
                builder
                    .unicode(unicode)
                    .size_limit(REGEX_SIZE_MAX)
                    .dfa_size_limit(REGEX_SIZE_MAX)
                    .nest_limit(40);
                builder.build().ok()
            };
            // ASCII classes are smaller and faster; only a rule that needs Unicode gets it.
            build(false).or_else(|| build(true))
        };
        self.regex.get_or_init(compile).as_ref()
    }
}

/// The literal text that a regular expression begins with.
fn literal_lead(regex: &str) -> String {
    let mut out = String::new();
    let mut rest = regex
        .strip_prefix("(?P<secret>")
        .unwrap_or(regex)
        .chars()
        .peekable();
    while let Some(c) = rest.next() {
        let literal = match c {
            '\\' => match rest.next() {
                Some(e) if e.is_ascii_punctuation() => e,
                _ => break,
            },
            c if c.is_ascii_alphanumeric()
                || matches!(
                    c,
                    '_' | '-'
                        | ':'
                        | '/'
                        | '@'
                        | '='
                        | ','
                        | ' '
                        | '!'
                        | '~'
                        | '%'
                        | '&'
                        | '"'
                        | '\''
                ) =>
            {
                c
            }
            _ => break,
        };
        if matches!(rest.peek(), Some('?' | '*' | '{' | '+')) {
            break;
        }
        out.push(literal);
    }
    // An alternative on the top level has another beginning.
    let mut depth = 0i32;
    let mut class = false;
    let mut escaped = false;
    for c in regex.strip_prefix("(?P<secret>").unwrap_or(regex).chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '(' if !class => depth += 1,
            ')' if !class => depth -= 1,
            '|' if !class && depth <= 0 => return String::new(),
            _ => {}
        }
    }
    out
}

/// The value as a pseudonym sees it: spacing and dashes do not make another value.
pub(crate) fn normal(value: &str) -> Vec<u8> {
    value
        .bytes()
        .filter(|b| !matches!(b, b' ' | b'-'))
        .collect()
}

/// One scan under way.
struct Pass<'s> {
    scanner: &'s Scanner,
    found: Vec<Candidate>,
    spans: Vec<(usize, usize)>,
    /// For each rule the end of the last window in the present view.
    done: Vec<usize>,
    work: usize,
}

impl Pass<'_> {
    fn run(&mut self, views: &Views<'_>, index: usize) -> Result<(), Refused> {
        let Some(view) = views.view(index) else {
            return Ok(());
        };
        let text = view.text();
        self.done.fill(0);
        let scanner = self.scanner;
        let mut marker_end = 0;
        for hit in scanner.search.find_overlapping_iter(text.0) {
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
        if !scanner.by_number.is_empty() {
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
        let done = self.done.get(index).copied().unwrap_or(0);
        // What lay well inside the last window has been seen.
        if hit.1 + WINDOW.1 / 2 < done {
            return Ok(());
        }
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
                found.1 = text.skip(end, ANCHORED, |b| super::text::is_token(b) || b == b'.');
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
                for &number in &scanner.by_number {
                    let Some(rule) = scanner.rules.get(number) else {
                        continue;
                    };
                    let (least, most) = rule.def.digits.unwrap_or((0, 0));
                    if count >= least && most > 0 {
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
        if !bounded(text, rule.def.boundary, start, start, true) {
            return false;
        }
        let value = text.cut(start, end);
        if rule.open_end {
            if glued(text.before(end), text.at(end)) {
                end = text.skip(end, 512, |b| {
                    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
                });
            }
        } else if !bounded(text, rule.def.boundary, start, end, false) {
            return false;
        }
        if rule.def.validator.is_some_and(|v| !v.passes(value)) {
            return false;
        }
        if rule.def.class == "secret"
            && (placeholder::is_placeholder(value) || self.scanner.ids.is_all_markers(value))
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
fn clip(text: Text<'_>, start: usize, end: usize, hit: (usize, usize)) -> (usize, usize) {
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

fn glued(a: u8, b: u8) -> bool {
    a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric()
}

/// Whether a match may begin (or end) at `at`.
fn bounded(text: Text<'_>, boundary: Boundary, _start: usize, at: usize, _begin: bool) -> bool {
    let (a, b) = (text.before(at), text.at(at));
    match boundary {
        Boundary::None => true,
        Boundary::Token => !glued(a, b),
        Boundary::Base64 => {
            let part = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'-' | b'_');
            !(part(a) && part(b))
        }
    }
}

/// Whether one of the rule's `near` words stands close to the value, and no name beside it says that it is a digest.
fn is_near(text: Text<'_>, rule: &Rule, start: usize, end: usize) -> bool {
    if rule.def.class == "secret" && names_digest(text, start) {
        return false;
    }
    let (low, high) = clip(
        text,
        start.saturating_sub(NEAR),
        end + NEAR / 2,
        (start, end),
    );
    // Words of another paragraph say nothing: the line counts, and the one before.
    let line = text.line_start(start, NEAR);
    let low = low.max(text.line_start(line.saturating_sub(1), NEAR));
    let high = high.min(text.line_end(end, NEAR));
    rule.def.near.iter().any(|word| {
        let word = word.as_bytes();
        let mut from = low;
        while let Some(i) = text.find(from, high, word) {
            let inside = i < end && i + word.len() > start;
            // Short words count only by themselves: "sin" is not in "single".
            let alone = word.len() > 3
                || !(text.before(i).is_ascii_alphabetic()
                    || text.at(i + word.len()).is_ascii_alphabetic());
            if alone && !inside {
                return true;
            }
            from = i + 1;
        }
        false
    })
}

/// Whether the name in front of the value is one of an id or digest.
fn names_digest(text: Text<'_>, start: usize) -> bool {
    let end = text.back(start, 6, |b| {
        matches!(b, b' ' | b'"' | b'\'' | b'=' | b':' | b'`')
    });
    let low = text.back(end, 40, |b| {
        b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
    });
    let name = text.cut(low, end);
    let last = name
        .rsplit(|b| matches!(b, b'_' | b'-'))
        .next()
        .unwrap_or(name);
    #[rustfmt::skip]
    let words: &[&str] = &[
        "id", "hash", "sha", "sha1", "sha256", "sha512", "md5", "etag", "digest", "checksum",
        "commit", "rev", "revision", "uuid", "guid", "integrity", "version", "ref", "cid",
        "fingerprint", "build", "blob", "tree", "parent", "trace", "span", "request", "correlation",
        "image",
    ];
    words
        .iter()
        .any(|w| last.eq_ignore_ascii_case(w.as_bytes()))
}
