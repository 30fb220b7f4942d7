//! Every test and page that SECURITY.md names exists and every such test is run, so that no
//! promise loses its proof unnoticed; and the document claims no more than it may.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn security() -> String {
    fs::read_to_string(root().join("SECURITY.md")).unwrap()
}

/// The text of all files below that hold tests, in Rust and Python.
fn all_tests() -> String {
    let mut text = String::new();
    let mut left: Vec<PathBuf> = ["tests", "src"].map(|name| root().join(name)).to_vec();
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().unwrap_or_default();
            if path.is_dir() {
                left.push(path);
            } else if ending == "rs" || ending == "py" {
                text.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

/// Whether `text` has a test of this name which is not left out.
fn is_run(text: &str, name: &str) -> bool {
    if name.starts_with("test_") {
        return text.contains(&format!("\ndef {name}("));
    }
    let Some(at) = text.find(&format!("fn {name}()")) else {
        // A property takes arguments; proptest's macro runs it.
        return text.contains(&format!("fn {name}(\n"));
    };
    // Its attributes are what stands between it and the end of whatever comes before.
    let before = &text[..at];
    let attributes = &before[before.rfind(['}', ';']).map_or(0, |end| end + 1)..];
    attributes.contains("#[test]") && !attributes.contains("#[ignore")
}

/// The rows of the table under this heading, without its two lines of heading, as cells.
fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
    let section = text.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let cells = |row: &str| {
        let row = row.trim_matches('|');
        row.split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    rows.skip(2).map(cells).collect()
}

/// How many proofs a cell names, each of which must be there.
fn proofs(cell: &str, tests: &str) -> usize {
    let mut named = 0;
    let mut before = "";
    for (number, part) in cell.split('`').enumerate() {
        if number % 2 == 1 {
            let exists = match part.strip_prefix("tests/") {
                Some(file) => root().join("tests").join(file).exists(),
                None if before.ends_with("fuzz target ") => {
                    let target = format!("fuzz/fuzz_targets/{part}.rs");
                    root().join(target).exists()
                }
                None => is_run(tests, part),
            };
            assert!(
                exists,
                "SECURITY.md names `{part}`, which is no test that is run"
            );
            named += 1;
        }
        before = part;
    }
    for link in cell.split("](").skip(1) {
        let link = link.split(')').next().unwrap();
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let page = fs::read_to_string(root().join(file)).unwrap();
        let anchor = |line: &str| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().replace(' ', "-")
        };
        let mut headings = page.lines().filter(|line| line.starts_with('#'));
        let exists = heading.is_empty() || headings.any(|line| anchor(line) == heading);
        assert!(exists, "SECURITY.md leads to {link}, which is not there");
        named += 1;
    }
    named
}

#[test]
fn every_promise_in_security_md_names_a_test_that_is_run() {
    let tests = all_tests();
    let rows = table(&security(), "Promises, and the tests that hold them");
    let mut named = 0;
    for row in &rows {
        assert_eq!(row.len(), 3, "{row:?}");
        let found = proofs(&row[2], &tests);
        assert!(found > 0, "no test is named for: {}", row[0]);
        named += found;
    }
    assert!(
        rows.len() > 50 && named > 80,
        "{} rows, {named} tests",
        rows.len()
    );
}

#[test]
fn every_control_that_is_mapped_names_a_test_or_a_page() {
    let tests = all_tests();
    let rows = table(&security(), "What regulations ask");
    for row in &rows {
        assert_eq!(row.len(), 3, "{row:?}");
        let found = proofs(&row[2], &tests);
        assert!(found > 0, "nothing is named for: {}", row[0]);
    }
    for regulation in [
        "HIPAA 164.312",
        "PCI DSS 4.0 3.",
        "SOC 2 CC6",
        "GDPR Art. 17",
        "GDPR Art. 25",
        "GDPR Art. 32",
        "NIST 800-53 AU-",
        "NIST 800-53 SC-",
        "NIST 800-53 MP-",
    ] {
        let is_there = rows.iter().any(|row| row[0].starts_with(regulation));
        assert!(is_there, "{regulation}");
    }
}

/// "Supports", never "makes compliant".
#[test]
fn no_page_claims_compliance() {
    const CLAIMS: [&str; 7] = [
        "complian",
        "certified",
        "certification",
        "accredited",
        "fulfils",
        "satisfies",
        "in accordance with",
    ];
    let claims = |text: &str| {
        let text = text.replace('\n', " ").to_lowercase();
        let sentences = text.split_inclusive(['.', '|']).map(str::to_owned);
        sentences
            .filter(|sentence| CLAIMS.iter().any(|claim| sentence.contains(claim)))
            .filter(|sentence| {
                let mut words = sentence.split(|c: char| !c.is_alphanumeric());
                !words.any(|word| ["no", "not", "never", "none"].contains(&word))
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(claims("It makes you HIPAA compliant.").len(), 1);
    assert_eq!(claims("It never makes you HIPAA compliant.").len(), 0);
    let mut pages = vec![root().join("SECURITY.md"), root().join("README.md")];
    let docs = fs::read_dir(root().join("docs")).unwrap();
    pages.extend(docs.map(|entry| entry.unwrap().path()));
    for page in pages {
        let found = claims(&fs::read_to_string(&page).unwrap());
        assert!(found.is_empty(), "{}: {found:?}", page.display());
    }
}

#[test]
fn what_is_left_out_is_told_from_what_is_run() {
    let text = "\
fn helper() {}
#[test]
fn one_that_is_run() {
}
#[test]
#[ignore = \"why; not\"]
fn one_that_is_not() {}
";
    let text = text.replace("why; not", "why");
    assert!(is_run(&text, "one_that_is_run"));
    for other in ["one_that_is_not", "helper", "none"] {
        assert!(!is_run(&text, other), "{other}");
    }
}
