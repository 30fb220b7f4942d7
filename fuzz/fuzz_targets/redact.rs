//! Nothing that was planted is left, what is left is stable, and it has not grown by more than its markers.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use strongroom::redact::{Engine, PACKS};
use strongroom_fuzz::planted::Planted;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    Engine::builder()
        .packs(PACKS)
        .build()
        .expect("the packs are good")
});

/// No marker is longer.
const MARKER_BYTES_MAX: usize = 96;

fuzz_target!(|input: Planted| {
    let Ok(out) = ENGINE.redact(&input.text, None) else {
        return;
    };
    assert!(!input.is_left(&out.text), "{:?}", out.text);
    assert!(input.secrets.is_empty() || !out.findings.is_empty());
    assert!(out.text.len() <= input.text.len() + out.findings.len() * MARKER_BYTES_MAX);
    let again = ENGINE
        .redact(&out.text, None)
        .expect("what is clean is not refused");
    assert_eq!(again.text, out.text);
    assert!(again.findings.is_empty());
    // The places are those of the input, in order, on characters.
    let mut end = 0;
    for finding in &out.findings {
        assert!(finding.start >= end && input.text.get(finding.start..finding.end).is_some());
        assert_eq!(
            finding.line,
            input.text[..finding.start].matches('\n').count() + 1
        );
        end = finding.end;
    }
});
