//! Every test that SECURITY.md names exists, so that no promise loses its proof unnoticed.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn all_tests() -> String {
    let mut text = String::new();
    for entry in fs::read_dir(root().join("tests")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    text
}

#[test]
fn every_promise_in_security_md_names_a_test_that_exists() {
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let tests = all_tests();
    let mut named = 0;
    for row in security
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'))
    {
        let Some(cell) = row.trim_end_matches('|').rsplit('|').next() else {
            continue;
        };
        for name in cell.split('`').skip(1).step_by(2) {
            let exists = match name.strip_prefix("tests/") {
                Some(file) => root().join("tests").join(file).exists(),
                None if name.contains('_') && name.len() > 12 => {
                    tests.contains(&format!("fn {name}()"))
                }
                None => continue,
            };
            assert!(exists, "SECURITY.md names `{name}`, which is no test");
            named += 1;
        }
    }
    assert!(named > 40, "only {named} tests are named");
}
