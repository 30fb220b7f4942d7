//! `redact`: a text in, the text without what a policy removes out. No store, no key.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use strongroom::Error;
use strongroom::policy;
use strongroom::redact::{Engine, Finding, INPUT_BYTES_MAX, Redacted, Refused};
use strongroom::wire::{Line, LineReader, line_bytes_max};

use super::args::RedactArgs;
use super::failure::{Exit, Failure, Stop};
use super::output::{print, say};

pub fn run(args: &RedactArgs) -> Result<(), Stop> {
    let policy = policy::load_named_or_path(&args.policy).map_err(Error::from)?;
    let engine = policy.redaction.engine().map_err(Error::from)?;
    let input = open(args.file.as_deref())?;
    if args.json_lines {
        return lines(&engine, input);
    }
    let text = read(input)?;
    match engine.redact(&text, None) {
        Ok(redacted) if args.json => print(&Answer::of(&redacted).to_line()),
        Ok(redacted) => {
            say(&summary(&redacted.findings));
            print(&redacted.text)
        }
        Err(refused) => {
            if args.json {
                print(&Answer::refused(&refused).to_line())?;
            }
            Err(failure(&refused).into())
        }
    }
}

/// One JSON answer for each line that is not blank.
fn lines(engine: &Engine, input: Box<dyn BufRead>) -> Result<(), Stop> {
    let bytes_max = line_bytes_max(INPUT_BYTES_MAX as u64);
    for line in LineReader::new(input, bytes_max) {
        let answer = match line.map_err(|error| unreadable(&error))? {
            Line::Text(line) => answer(engine, &line),
            Line::TooLong { bytes_max, .. } => {
                Answer::error(format!("the line has more than {bytes_max} bytes")).to_line()
            }
        };
        print(&answer)?;
    }
    Ok(())
}

fn answer(engine: &Engine, line: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Input {
        text: String,
    }
    // What the parser says may quote the line.
    let Ok(input) = serde_json::from_slice::<Input>(line) else {
        return Answer::error("the line is not a JSON object with a string \"text\"").to_line();
    };
    match engine.redact(&input.text, None) {
        Ok(redacted) => Answer::of(&redacted).to_line(),
        Err(refused) => Answer::refused(&refused).to_line(),
    }
}

/// What JSON says of one text.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Redacted {
        text: &'a str,
        findings: &'a [Finding],
    },
    Refused {
        error: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
    },
}

impl<'a> Answer<'a> {
    fn of(redacted: &'a Redacted<'_>) -> Self {
        Self::Redacted {
            text: &redacted.text,
            findings: &redacted.findings,
        }
    }

    fn refused(refused: &'a Refused) -> Self {
        let (rule, line) = match refused {
            Refused::Rule { rule, line, .. } => (Some(rule.as_str()), Some(*line)),
            _ => (None, None),
        };
        Self::Refused {
            error: refused.to_string(),
            rule,
            line,
        }
    }

    fn error(error: impl Into<String>) -> Self {
        Self::Refused {
            error: error.into(),
            rule: None,
            line: None,
        }
    }

    fn to_line(&self) -> String {
        // Strings and numbers only: there is nothing that JSON cannot hold.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// `removed 3 values: aws-access-key-id 1, password 2`
fn summary(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "removed nothing".to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry(&finding.rule).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(rule, count)| format!("{rule} {count}"))
        .collect();
    let s = if findings.len() == 1 { "" } else { "s" };
    format!("removed {} value{s}: {}", findings.len(), counts.join(", "))
}

fn failure(refused: &Refused) -> Failure {
    let next = match refused {
        Refused::Rule { .. } => {
            "Remove that value from the text, or use a policy with another action for the rule."
        }
        _ => "Split the text, and redact its parts.",
    };
    Failure::new(Exit::Refused, format!("redact the text: {refused}"), next)
}

fn open(file: Option<&Path>) -> Result<Box<dyn BufRead>, Stop> {
    let Some(path) = file else {
        if io::stdin().is_terminal() {
            say("reading the text; Ctrl-D ends");
        }
        return Ok(Box::new(io::stdin().lock()));
    };
    match File::open(path) {
        Ok(file) => Ok(Box::new(BufReader::new(file))),
        Err(error) => Err(Failure::new(
            match error.kind() {
                ErrorKind::NotFound => Exit::NotFound,
                _ => Exit::Other,
            },
            format!("open {}: {}", path.display(), error.kind()),
            "Check the path.",
        )
        .into()),
    }
}

/// Reads a whole text, and no more than the engine takes.
fn read(input: impl Read) -> Result<String, Stop> {
    let mut bytes = Vec::new();
    input
        .take(INPUT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    if bytes.len() > INPUT_BYTES_MAX {
        return Err(Failure::new(
            Exit::Refused,
            format!("redact the text: it has more than {INPUT_BYTES_MAX} bytes"),
            "Split the text, and redact its parts.",
        )
        .into());
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::new(
            Exit::Other,
            "read the text: it is not UTF-8",
            "Convert it to UTF-8 first.",
        )
        .into()
    })
}

fn unreadable(error: &io::Error) -> Stop {
    Failure::new(
        Exit::Other,
        format!("read the input: {}", error.kind()),
        "Check where the input comes from.",
    )
    .into()
}
