//! The README shows what really happens.

use std::fmt::Write;

#[path = "../examples/session.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod session;

const README: &str = include_str!("../README.md");

#[test]
fn the_session_prints_what_the_readme_shows() {
    let mut printed = Vec::new();
    session::run(&mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    assert!(
        README.contains(&format!("```text\n{printed}```\n")),
        "put this into README.md:\n{printed}"
    );
}

#[test]
fn the_limits_are_those_of_the_shipped_policies() {
    let [default, strict] = ["default", "strict"]
        .map(|name| strongroom::policy::load_named_or_path(name).unwrap().limits);
    let kib = |bytes: u64| format!("{} KiB", bytes / 1_024);
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let mut rows = String::new();
    let mut row = |name: &str, shown: &dyn Fn(&strongroom::policy::Limits) -> String| {
        writeln!(
            rows,
            "| {name} | {} | {} |",
            shown(&default),
            shown(&strict)
        )
        .unwrap();
    };
    row("bytes of a text file", &|limits| kib(limits.max_file_bytes));
    row("bytes of all files", &|limits| mib(limits.max_total_bytes));
    row("files", &|limits| thousands(limits.max_files));
    row("characters of a line", &|limits| {
        thousands(limits.max_line_chars)
    });
    assert!(README.contains(&rows), "{rows}");
}

fn thousands(number: u64) -> String {
    format!("{},{:03}", number / 1_000, number % 1_000)
}
