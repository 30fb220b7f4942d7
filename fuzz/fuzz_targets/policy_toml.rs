//! Any text is a policy that survives flattening, or an error that points into it.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use strongroom::policy;
use strongroom_fuzz::policies::PolicyText;

#[derive(Debug, Arbitrary)]
enum Input {
    Raw(Vec<u8>),
    Built(PolicyText),
    Changed(PolicyText, strongroom_fuzz::mutation::Changes),
}

fuzz_target!(|input: Input| {
    let bytes = match input {
        Input::Raw(bytes) => bytes,
        Input::Built(PolicyText(text)) => text.into_bytes(),
        Input::Changed(PolicyText(text), changes) => changes.apply(text.as_bytes()),
    };
    let text = String::from_utf8_lossy(&bytes);
    match policy::load(&text, "p.toml") {
        Ok(policy) => {
            let flat = policy.to_toml();
            let again = policy::load(&flat, "flat.toml").expect("what was flattened loads");
            assert_eq!(again, policy);
            assert_eq!(again.to_toml(), flat);
            assert!(policy.diff(&again).is_empty());
            for tenant in ["one", "team-a/x", "guests/a/b"] {
                let rules = policy.for_tenant(tenant);
                assert!(rules.limits.max_files <= policy.limits.max_files);
                assert!(rules.limits.max_file_bytes <= policy.limits.max_file_bytes);
            }
        }
        Err(error) => {
            let at = error
                .position()
                .expect("a text this short is wrong at a place");
            let lines = text.split('\n').count();
            assert!(
                (1..=lines).contains(&at.line) && at.column >= 1,
                "{at} of {lines} lines"
            );
            let shown = error.to_string();
            assert!(
                shown.starts_with(&format!("p.toml:{}:{}: ", at.line, at.column)),
                "{shown}"
            );
        }
    }
});
