//! Bytes that are read as a record are written back the same; a sealed record opens only whole and in its place.
#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use strongroom::audit::Entry;
use strongroom::fuzzing::Sealer;
use strongroom::key::StoreId;
use strongroom_fuzz::keys::Counted;
use strongroom_fuzz::mutation::Changes;
use strongroom_fuzz::records::{Kind, Record};

#[derive(Debug, Arbitrary)]
enum Input {
    Raw(Kind, Vec<u8>),
    Built(Record),
    Changed(Record, Changes),
    Sealed {
        record: Record,
        epoch: u32,
        place: Vec<u8>,
        other: Vec<u8>,
        changes: Changes,
    },
    Entry(Vec<u8>),
}

static RANDOM: LazyLock<Counted> = LazyLock::new(Counted::default);
static SEALERS: LazyLock<[Sealer; 2]> =
    LazyLock::new(|| [1, 2].map(|id| Sealer::new(StoreId([id; 16]), &*RANDOM).expect("a key")));

fuzz_target!(|input: Input| {
    let read = |kind: Kind, bytes: &[u8]| {
        let written = kind.recode(bytes);
        assert!(
            written.as_deref().is_none_or(|written| written == bytes),
            "{kind:?}"
        );
        written.is_some()
    };
    match input {
        Input::Raw(kind, bytes) => {
            read(kind, &bytes);
        }
        Input::Built(Record { kind, bytes }) => assert!(read(kind, &bytes), "{kind:?}"),
        Input::Changed(Record { kind, bytes }, changes) => {
            read(kind, &changes.apply(&bytes));
        }
        Input::Sealed {
            record,
            epoch,
            place,
            other,
            changes,
        } => {
            let [own, foreign] = &*SEALERS;
            let value = own
                .seal(epoch, &place, &record.bytes, &*RANDOM)
                .expect("it is sealed");
            assert_eq!(own.open(epoch, &place, &value), Some(record.bytes));
            let changed = changes.apply(&value);
            assert!(changed == value || own.open(epoch, &place, &changed).is_none());
            assert!(other == place || own.open(epoch, &other, &value).is_none());
            assert_eq!(own.open(epoch.wrapping_add(1), &place, &value), None);
            assert_eq!(foreign.open(epoch, &place, &value), None);
        }
        Input::Entry(bytes) => {
            if let Ok(entry) = Entry::from_json(&bytes) {
                let text = entry.to_json();
                let again = Entry::from_json(text.as_bytes()).expect("what was written is read");
                assert_eq!(again.to_json(), text);
            }
        }
    }
});
