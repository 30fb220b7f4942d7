//! A backup with a changed byte is refused, whatever the byte; any other file is answered, and costs no more than it has.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use strongroom::{BackupKind, Code, verify_backup};
use strongroom_fuzz::backups::{Built, REAL, Scratch, sections};
use strongroom_fuzz::mutation::Changes;

#[derive(Debug, Arbitrary)]
enum Input {
    Raw(Vec<u8>),
    Changed {
        is_keys: bool,
        changes: Changes,
    },
    /// One bit of the head of a section, which says what the section is.
    HeadChanged {
        is_keys: bool,
        section: u8,
        at: u8,
        bit: u8,
    },
    Built(Built),
    BuiltChanged(Built, Changes),
}

static SCRATCH: LazyLock<Scratch> = LazyLock::new(|| Scratch::unnamed("backup"));

fuzz_target!(|input: Input| {
    let (bytes, is_changed) = match input {
        Input::Raw(bytes) => (bytes, false),
        Input::Changed { is_keys, changes } => {
            let real = &REAL[usize::from(is_keys)];
            let bytes = changes.apply(real);
            let is_changed = bytes != *real;
            (bytes, is_changed)
        }
        Input::HeadChanged {
            is_keys,
            section,
            at,
            bit,
        } => {
            let mut bytes = REAL[usize::from(is_keys)].clone();
            let starts = sections(&bytes);
            let start = starts[usize::from(section) % starts.len()];
            bytes[start + usize::from(at) % 9] ^= 1 << (bit % 8);
            (bytes, true)
        }
        Input::Built(Built(bytes)) => (bytes, false),
        Input::BuiltChanged(Built(bytes), changes) => {
            let changed = changes.apply(&bytes);
            // Some are built with a byte too much, and may be made whole.
            SCRATCH.write(&bytes);
            let was_whole = verify_backup(SCRATCH.path(), |_, _, _| ()).is_ok();
            let is_changed = was_whole && changed != bytes;
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
