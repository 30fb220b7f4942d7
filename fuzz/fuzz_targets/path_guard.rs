//! The guard answers every text; what it accepts is canonical, below the root, and made of its components.
#![no_main]

use libfuzzer_sys::fuzz_target;
use strongroom::path::{Guard, MemoryPath};
use strongroom_fuzz::paths::RawPath;

fuzz_target!(|input: (bool, RawPath)| {
    let (portable, RawPath(raw)) = input;
    let guard = Guard::new().portable_names(portable);
    let path = match guard.check(&raw) {
        Ok(path) => path,
        Err(error) => {
            assert!(!error.to_string().contains(char::is_control));
            let Some(near) = error.suggestion() else {
                return;
            };
            near.clone()
        }
    };
    assert_eq!(
        guard.check(path.as_str()).as_ref(),
        Ok(&path),
        "not idempotent"
    );
    assert!(MemoryPath::root().contains(&path));
    let names: Vec<&str> = path.components().collect();
    assert!(
        !names
            .iter()
            .any(|name| matches!(*name, "" | "." | "..") || name.contains(['/', '\\']))
    );
    // Two names never lead to one file: but for empty ones and `.`, the components are those that were given.
    if raw.is_ascii() && guard.check(&raw).is_ok() {
        let given = raw.split('/').skip(2);
        assert!(
            given
                .filter(|name| !matches!(*name, "" | "."))
                .eq(names.iter().copied())
        );
    }
    assert_eq!(
        ["/memories"]
            .iter()
            .chain(&names)
            .copied()
            .collect::<Vec<_>>()
            .join("/"),
        path.as_str()
    );
});
