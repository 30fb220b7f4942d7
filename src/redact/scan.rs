//! The rules made ready, with their one keyword search, and the scan of all views of a text.

use std::collections::HashSet;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, StartKind};
use regex::bytes::{Regex, RegexBuilder};

use super::error::{RedactError, Refused};
use super::example;
use super::marker::{self, Ids};
use super::number::Numbers;
use super::pass::Pass;
use super::rule::{Boundary, RuleDef};
use super::view::Views;

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
    pub(super) anchored: bool,
    /// A match may go on to the end of its token: the keyword alone tells the kind.
    pub(super) open_end: bool,
}

/// All rules with their one keyword search.
pub(crate) struct Scanner {
    pub(super) rules: Vec<Rule>,
    keywords: Vec<Vec<u8>>,
    search: OnceLock<Option<AhoCorasick>>,
    pub(super) by_keyword: Vec<Vec<usize>>,
    pub(super) numbers: Numbers,
    pub(super) ids: Ids,
    pub(super) allow: HashSet<Vec<u8>>,
}

impl Scanner {
    pub(crate) fn new(
        defs: Vec<RuleDef>,
        ids: Ids,
        allow: HashSet<Vec<u8>>,
    ) -> Result<Self, RedactError> {
        let numbers = Numbers::new(&defs)?;
        let mut keywords: Vec<Vec<u8>> = vec![marker::OPEN.to_vec()];
        let mut by_keyword: Vec<Vec<usize>> = vec![Vec::new()];
        let mut seen = std::collections::HashMap::new();
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
        }
        let rules = defs.into_iter().map(Rule::new).collect();
        Ok(Self {
            rules,
            keywords,
            search: OnceLock::new(),
            by_keyword,
            numbers,
            ids,
            allow,
        })
    }

    /// The keyword search, made when it is first needed: a process that only reads what was
    /// scanned already never needs it, and it is the largest part of a policy's cost.
    pub(super) fn search(&self) -> Option<&AhoCorasick> {
        let build = || {
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::Standard)
                .start_kind(StartKind::Unanchored)
                .kind(Some(AhoCorasickKind::DFA))
                .build(&self.keywords)
                .ok()
        };
        self.search.get_or_init(build).as_ref()
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
        let mut pass = Pass::new(self, text.len() * WORK.0 + WORK.1);
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

    pub(super) fn compiled(&self) -> Option<&Regex> {
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
