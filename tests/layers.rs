//! Keeps the table of layers: a file of the library imports only from layers below its own.
//!
//! The table stands in docs/ARCHITECTURE.md and here. A module that is in neither fails, so a
//! new one needs a row. The same walk over the sources keeps files small and says that each
//! starts by naming its job.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Low to high. Modules of one layer do not know each other.
const LAYERS: [&[&str]; 9] = [
    &["hex", "vectors"],
    &["clock", "path", "key", "edit", "wire", "backend", "redact"],
    // `record` keeps its chains.
    &["audit"],
    &["policy", "seal", "record"],
    // `store` asks it on every read.
    &["retention"],
    &["store"],
    &["error"],
    // `fuzzing` is built for the fuzz targets only.
    &["handler", "fuzzing"],
    &["cli"],
];

/// Files that tie the modules together and belong to none.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

const LINES_MAX: usize = 450;

/// Files that are still to be split, and what they may not grow past until then.
const OVERLONG: [(&str, usize); 2] = [("store/change/mod.rs", 500), ("store/core.rs", 500)];

#[test]
fn a_file_imports_only_from_layers_below() {
    let mut wrong = Vec::new();
    for source in sources() {
        let own = source.module.as_str();
        if ROOTS.contains(&own) {
            continue;
        }
        let Some(layer) = layer(own) else {
            wrong.push(format!("{}: src/{own} has no row in LAYERS", source.name));
            continue;
        };
        for import in imports(&source) {
            let is_below = self::layer(&import).is_some_and(|below| below < layer);
            if import != own && !is_below {
                wrong.push(format!("{}: {own} imports {import}", source.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_module_that_the_library_declares_has_a_layer() {
    let lib = fs::read_to_string(src().join("lib.rs")).unwrap();
    let declared = lib.lines().filter_map(|line| {
        let line = line.trim_start_matches("pub ");
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    let missing: Vec<&str> = declared.filter(|name| layer(name).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_file_starts_with_its_job_and_is_small() {
    let mut wrong = Vec::new();
    for Source { name, text, .. } in sources() {
        if !text.starts_with("//! ") {
            wrong.push(format!("{name} does not start with its job"));
        }
        let lines = text.lines().count();
        let overlong = OVERLONG.iter().find(|(file, _)| *file == name);
        if lines > overlong.map_or(LINES_MAX, |(_, max)| *max) && !is_test(&name) {
            wrong.push(format!("{name} has {lines} lines"));
        }
        if overlong.is_some() && lines <= LINES_MAX {
            wrong.push(format!("{name} is small enough: take it off OVERLONG"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "\
//! use crate::not_code;
use crate::policy::{self, Policy};
use crate::{edit, wire::Reply};
use super::super::seal;
use super::sibling; // crate::not_code
pub(in crate::handler) fn f(x: crate::key::KeyError) {}
mod inner {
    use super::super::super::record::Root;
    use super::super::other_sibling;
}
";
    let source = Source {
        name: "store/deep.rs".to_owned(),
        module: "store".to_owned(),
        depth: 2,
        text: text.to_owned(),
    };
    let found: Vec<String> = imports(&source).into_iter().collect();
    assert_eq!(
        found,
        ["edit", "handler", "key", "policy", "record", "seal", "wire"]
    );
}

struct Source {
    /// The path below `src`, with `/`.
    name: String,
    /// The module at the top that it belongs to, or the name of a root file.
    module: String,
    /// How many `super` lead from it to the root of the crate.
    depth: usize,
    text: String,
}

fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    collect(&src(), &mut files);
    assert!(files.len() > 100, "the sources are found");
    files.iter().map(|file| source(file)).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
}

fn source(file: &Path) -> Source {
    let below = file.strip_prefix(src()).unwrap();
    let parts: Vec<String> = below
        .iter()
        .map(|part| part.to_str().unwrap().to_owned())
        .collect();
    let name = parts.join("/");
    let first = parts.first().unwrap();
    let module = match first.strip_suffix(".rs") {
        Some(module) if !ROOTS.contains(&first.as_str()) => module.to_owned(),
        _ => first.clone(),
    };
    let is_mod_file = name.ends_with("/mod.rs");
    Source {
        depth: parts.len() - usize::from(is_mod_file),
        text: fs::read_to_string(file).unwrap(),
        name,
        module,
    }
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn is_test(name: &str) -> bool {
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    stem.ends_with("tests") || name.contains("/tests/")
}

/// The modules at the top that a file names, by `crate::` or by enough `super::`.
fn imports(source: &Source) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut depth = source.depth;
    let mut pending = String::new();
    for line in source.text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        if code.starts_with("mod ") && code.trim_end().ends_with('{') {
            depth = source.depth + 1;
        } else if code == "}" {
            depth = source.depth;
        }
        // What stands between `{` and `}` of one `use` may go over several lines.
        pending.push_str(code);
        pending.push(' ');
        if pending.contains("::{") && !pending.contains('}') {
            continue;
        }
        let statement = std::mem::take(&mut pending);
        for (at, _) in statement.match_indices("crate") {
            let is_word = !statement[..at].ends_with(is_ident);
            if let (true, Some(rest)) = (is_word, statement[at..].strip_prefix("crate::")) {
                found.extend(first_names(rest));
            }
        }
        for (at, _) in statement.match_indices("super::") {
            let is_start = !statement[..at].ends_with(is_ident) && !statement[..at].ends_with("::");
            if !is_start {
                continue;
            }
            let mut rest = &statement[at..];
            let mut ups = 0;
            while let Some(next) = rest.strip_prefix("super::") {
                rest = next;
                ups += 1;
            }
            if ups == depth {
                found.extend(first_names(rest));
            }
        }
    }
    found
}

/// `a::b` names `a`; `{a, b::c}` names `a` and `b`.
fn first_names(rest: &str) -> Vec<String> {
    let name =
        |text: &str| -> String { text.trim().chars().take_while(|c| is_ident(*c)).collect() };
    let Some(list) = rest.strip_prefix('{') else {
        return vec![name(rest)];
    };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut item = String::new();
    for character in list.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&std::mem::take(&mut item))),
            _ => item.push(character),
        }
    }
    names.push(name(&item));
    names.retain(|name| !name.is_empty() && name != "self");
    names
}

fn is_ident(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
