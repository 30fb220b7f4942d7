//! A backup with a changed byte is refused, whatever the byte; any other file is answered, and costs no more than it has.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use strongroom::{BackupKind, Code, verify_backup};
use strongroom_fuzz::backups::{Built, REAL, Scratch};
use strongroom_fuzz::mutation::Changes;

#[derive(Debug, Arbitrary)]
enum Input {
    Raw(Vec<u8>),
    Changed { is_keys: bool, changes: Changes },
    Built(Built),
    BuiltChanged(Built, Changes),
}

static SCRATCH: LazyLock<Scratch> = LazyLock::new(|| Scratch::new("backup"));

fuzz_target!(|input: Input| {
    let (bytes, is_changed) = match input {
        Input::Raw(bytes) => (bytes, false),
        Input::Changed { is_keys, changes } => {
            let real = &REAL[usize::from(is_keys)];
            let bytes = changes.apply(real);
            let is_changed = bytes != *real;
            (bytes, is_changed)
        }
        Input::Built(Built(bytes)) => (bytes, false),
        Input::BuiltChanged(Built(bytes), changes) => {
            let changed = changes.apply(&bytes);
            let is_changed = changed != bytes;
            (changed, is_changed)
        }
    };
    SCRATCH.write(&bytes);
    match verify_backup(SCRATCH.path(), |_, _, _| ()) {
        Ok(check) => {
            assert!(!is_changed, "a changed byte is accepted");
            let kind = if bytes[12] == 1 {
                BackupKind::Records
            } else {
                BackupKind::Keys
            };
            assert_eq!(check.kind, kind);
            assert!(check.records <= bytes.len() as u64 && check.tenants <= bytes.len() as u64);
        }
        Err(error) => assert!(
            matches!(error.code(), Code::Integrity | Code::Other | Code::Usage),
            "{error}"
        ),
    }
});
