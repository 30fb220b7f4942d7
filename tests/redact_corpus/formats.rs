//! An instance of every rule: values made from the issuers' formats, written the ways people write them.

use super::{Rng, people, surround};

/// A text in which one rule's value is planted.
pub struct Instance {
    /// The rule that the value is for.
    pub rule: &'static str,
    /// How it was written.
    pub writing: &'static str,
    /// The whole text.
    pub text: String,
    /// Where the value stands in it, as byte offsets; several lines of a key are several spans.
    pub spans: Vec<(usize, usize)>,
}

impl Instance {
    /// Whether nothing of what was planted is left in `output`.
    pub fn is_gone_from(&self, output: &str) -> bool {
        !self
            .spans
            .iter()
            .any(|&(from, to)| super::is_left(output, &self.text[from..to]))
    }
}

const FORMATS: &[&str] = &[include_str!("formats-1.txt"), include_str!("formats-2.txt")];
const STRUCTURES: &str = include_str!("structures.txt");

/// The formats of one rule: a template and, where the value needs one, the name that introduces it.
type Format = (&'static str, Option<(&'static str, &'static str)>);

fn rows(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(|l| l.split_once(" | ").unwrap())
}

fn formats(rule: &str) -> Vec<Format> {
    FORMATS
        .iter()
        .flat_map(|t| rows(t))
        .filter(|(id, _)| *id == rule)
        .map(|(_, rest)| match rest.rsplit_once(" | ") {
            Some((template, name)) => (template, Some(name.split_once(", ").unwrap())),
            None => (rest, None),
        })
        .collect()
}

/// The ids of all rules that the tables know, each once.
pub fn rules() -> Vec<&'static str> {
    let mut ids: Vec<&str> = FORMATS
        .iter()
        .flat_map(|t| rows(t))
        .chain(rows(STRUCTURES))
        .map(|(id, _)| id)
        .chain(people::RULES.iter().copied())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// `n` secrets that say by themselves what they are, each of another rule.
pub fn secrets(rng: &mut Rng, n: usize) -> Vec<String> {
    let alone = |row: &&(&str, &str)| !row.1.contains(" | ") && !row.1.contains("<<");
    let all: Vec<(&str, &str)> = FORMATS.iter().flat_map(|t| rows(t)).collect();
    let mut alone: Vec<&(&str, &str)> = all.iter().filter(alone).collect();
    alone.dedup_by_key(|row| row.0);
    let step = alone.len() / n;
    (0..n).map(|i| rng.expand(alone[i * step].1)).collect()
}

/// What may stand right behind a value in a sentence.
const AFTER: &[&str] = &[
    "", ".", ",", ";", ":", "!", "?", ")", "]", "}", ">", "\"", "'", "`", "*", "**", "|", " |",
    "…", " ", "\t",
];

/// Ways to write a value that says by itself what it is. The keys say nothing.
const ALONE: &[(&str, &str)] = &[
    ("prose", "I pasted {v}{e} and it worked"),
    ("prose", "here it is: {v}{e}"),
    ("prose", "the old one ({v}) was revoked"),
    ("bold", "**{v}** is for CI"),
    ("link", "[{v}](https://x.example.org)"),
    ("header", "X-Request-Value: {v}"),
    ("url", "https://api.example.org/v1/items?x={v}&page=2"),
    (
        "json",
        "{\"region\": \"eu\", \"value\": \"{v}\", \"port\": 5432}",
    ),
    ("yaml", "settings:\n  value: {v}\n  retries: 3"),
    ("env", "export SERVICE_VALUE={v}"),
    ("quoted", "set it to '{v}' and restart"),
    ("code", "const value = \"{v}\";"),
    ("code", "client = Client(\"{v}\", timeout=3)"),
    ("code span", "run `tool {v}` first"),
    ("table", "| stage | value |\n|---|---|\n| prod | {v} |"),
    (
        "log",
        "2026-01-02T03:04:05Z INFO started with {v}, attempt 2",
    ),
    ("list", "- {v}"),
    ("path", "kept in /srv/notes/d3/{v}/a.md until May"),
    ("line", "{v}"),
];

/// Ways to write a value that needs its name: `{k}` a variable's, `{w}` in words.
const NAMED: &[(&str, &str)] = &[
    ("prose", "{w} is {v}{e}"),
    ("prose", "The {w}: {v}{e}"),
    ("prose", "use the {w} {v} for staging"),
    ("bold", "**{w}**: `{v}`"),
    ("json", "{\"region\": \"eu\", \"{k}\": \"{v}\"}"),
    ("yaml", "settings:\n  {k}: {v}\n  retries: 3"),
    ("env", "{k}={v}"),
    ("env", "export {k}=\"{v}\""),
    ("shell", "docker run -e {k}={v} image"),
    ("code", "os.environ[\"{k}\"] = \"{v}\""),
    ("code", "const {k} = '{v}';"),
    ("table", "| {k} | {v} |"),
    ("table", "| setting | value |\n|---|---|\n| {w} | {v} |"),
    ("log", "2026-01-02T03:04:05Z INFO {k}={v} loaded"),
    ("toml", "{k} = \"{v}\""),
    ("xml", "<add key=\"{k}\" value=\"{v}\" />"),
    ("url", "https://api.example.org/v1?id=4&{k}={v}&x=1"),
];

/// `n` instances of `rule`, in turn over its formats and the ways to write them.
pub fn instances(rule: &'static str, rng: &mut Rng, n: usize) -> Vec<Instance> {
    let formats = formats(rule);
    let structures: Vec<&str> = rows(STRUCTURES)
        .filter(|(id, _)| *id == rule)
        .map(|(_, t)| t)
        .collect();
    (0..n)
        .map(|i| {
            let (writing, marked) = if !structures.is_empty() {
                (
                    "structure",
                    rng.expand(structures[i % structures.len()])
                        .replace("\\n", "\n"),
                )
            } else {
                let (value, name) = if formats.is_empty() {
                    people::value(rule, rng)
                } else {
                    let (template, name) = formats[i % formats.len()];
                    (rng.expand(template), name)
                };
                let value = if value.contains("<<") {
                    value
                } else {
                    format!("<<{value}>>")
                };
                written(rule, &value, name, i, rng)
            };
            let (text, spans) = unmark(&surround(rng, &marked));
            Instance {
                rule,
                writing,
                text,
                spans,
            }
        })
        .collect()
}

fn written(
    rule: &str,
    value: &str,
    name: Option<(&str, &str)>,
    i: usize,
    rng: &mut Rng,
) -> (&'static str, String) {
    let end = *rng.pick(AFTER);
    let (forms, name) = match name {
        Some(name) => (NAMED, name),
        // What is a line of a file of its own stands on one.
        None if value.starts_with("APP_KEY=")
            || value.starts_with("PrivateKey =")
            || rule == "pgpass-line" =>
        {
            return ("line", value.to_owned());
        }
        None => (ALONE, ("", "")),
    };
    let (writing, form) = forms[i % forms.len()];
    let text = form
        .replace("{k}", name.0)
        .replace("{w}", name.1)
        .replace("{v}", value)
        .replace("{e}", end);
    (writing, text)
}

/// Takes the marks out and says what stood between them.
fn unmark(marked: &str) -> (String, Vec<(usize, usize)>) {
    let mut text = String::new();
    let mut spans = Vec::new();
    let mut rest = marked;
    while let Some((before, after)) = rest.split_once("<<") {
        let (value, after) = after.split_once(">>").unwrap();
        text.push_str(before);
        spans.push((text.len(), text.len() + value.len()));
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    (text, spans)
}
