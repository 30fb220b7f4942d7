//! What holds for the bytes of heads, roots and jobs: they survive the round trip, and nothing
//! that is cut, goes on, or is out of range is read.

use proptest::prelude::*;

use crate::audit::Chain;
use crate::key::FileTag;

use super::*;

const CHAIN: Chain = Chain {
    first: 3,
    first_prev: [1; 32],
    last: 9,
    tip: [2; 32],
};

fn summary(entries: u64) -> Summary {
    Summary {
        entries,
        set_hash: SetHash([7; 32]),
        below: Share::NOTHING,
    }
}

fn jobs() -> Vec<Job> {
    let (tag, tenant) = (FileTag([4; 16]), TenantId([5; 16]));
    let directories = vec![
        TrashDirectory {
            id: NodeId([6; 16]),
            unchecked: None,
        },
        TrashDirectory {
            id: NodeId([8; 16]),
            unchecked: Some((2, SetHash([9; 32]))),
        },
    ];
    let removal = |content| {
        Job::Remove(Removal {
            tag,
            tenant,
            directories: directories.clone(),
            content,
        })
    };
    let erasure = |stage| {
        Job::Erase(Erasure {
            tag,
            tenant,
            stage,
            started: 1,
            deleted: 2,
            purged: 3,
            audit: CHAIN,
            traces: vec![[1; TRACE_BYTES], [2; TRACE_BYTES]],
            // What may stand behind it: see the tests of jobs.
            trail: Trail::None,
        })
    };
    vec![
        removal(None),
        removal(Some((ContentId([3; 16]), 7))),
        Job::Rotate(Rotation {
            tag,
            tenant,
            epoch: 12,
        }),
        erasure(ErasureStage::KeyFile),
        erasure(ErasureStage::Records),
        erasure(ErasureStage::Deleted),
        erasure(ErasureStage::Purged),
        erasure(ErasureStage::Rekeyed),
    ]
}

/// Reads back what was written, and nothing of another length.
fn check<T: PartialEq + std::fmt::Debug>(
    value: &T,
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, RecordError>,
) {
    assert_eq!(&decode(bytes).unwrap(), value);
    for cut in 0..bytes.len() {
        assert!(decode(&bytes[..cut]).is_err(), "cut at {cut}: {value:?}");
    }
    for more in [0, 1] {
        let longer = [bytes, &[more]].concat();
        assert!(decode(&longer).is_err(), "one byte more: {value:?}");
    }
}

#[test]
fn jobs_are_read_as_they_were_written_and_not_otherwise() {
    for job in jobs() {
        check(&job, &job.encode(), Job::decode);
        assert_eq!(job.tenant(), TenantId([5; 16]));
        assert_eq!(job.removal().is_some(), matches!(job, Job::Remove(_)));
    }
    let done: Vec<bool> = jobs().iter().map(Job::is_done).collect();
    let all = [false, false, false, false, false, false, true, true];
    assert_eq!(done, all);
    for kind in [0, 4, 255] {
        let mut bytes = jobs()[0].encode();
        bytes[0] = kind;
        assert!(Job::decode(&bytes).is_err(), "a job of kind {kind}");
    }
}

#[test]
fn a_job_of_more_than_it_may_hold_is_not_read() {
    let directory = TrashDirectory {
        id: NodeId([6; 16]),
        unchecked: None,
    };
    let most = Job::Remove(Removal {
        tag: FileTag([4; 16]),
        tenant: TenantId([5; 16]),
        directories: vec![directory; JOB_DIRECTORIES_MAX],
        content: None,
    });
    let bytes = most.encode();
    assert_eq!(Job::decode(&bytes).unwrap(), most);
    // One directory more, and the count that says so.
    let count = 1 + 16 + 16..1 + 16 + 16 + 4;
    let mut more = bytes[..bytes.len() - 1].to_vec();
    let directories = u32::try_from(JOB_DIRECTORIES_MAX + 1).unwrap();
    more[count].copy_from_slice(&directories.to_be_bytes());
    more.extend([[6; 16].as_slice(), &[0], &[0]].concat());
    assert!(Job::decode(&more).is_err());
    // The same for the traces of an erasure: the last byte before them counts them.
    let erased = jobs().pop().unwrap().encode();
    let at = erased.len() - 2 * TRACE_BYTES - 1;
    assert_eq!(erased[at], 2);
    let mut full = [&erased[..], &[3; 2 * TRACE_BYTES]].concat();
    full[at] = 4;
    assert!(Job::decode(&full).is_ok());
    full.extend([3; TRACE_BYTES]);
    full[at] = 5;
    assert!(Job::decode(&full).is_err());
}

#[test]
fn heads_are_read_as_they_were_written_and_not_otherwise() {
    let head = Head {
        tenant: TenantId([5; 16]),
        root: summary(4),
        holds: summary(1),
        created: 17,
        audit: CHAIN,
        epoch: 3,
        retired: 2,
    };
    check(&head, &head.encode(), Head::decode);
    // The epoch in use is never a retired one.
    for retired in [3, 4] {
        let wrong = Head { retired, ..head };
        assert!(Head::decode(&wrong.encode()).is_err());
    }
}

#[test]
fn the_root_is_read_as_it_was_written_and_not_otherwise() {
    let mut root = Root {
        seq: 5,
        era: 1,
        records: 3,
        set_hash: SetHash([7; 32]),
        keyring_counter: 2,
        trusted_time: 1_000,
        audit: CHAIN,
        runs: LastRuns::default(),
        jumps: Jumps::default(),
    };
    for (at, (run, _)) in (11..).zip(Run::ALL) {
        assert_eq!(root.runs.last(run), None);
        root.runs.note(run, at);
        assert_eq!(root.runs.last(run), Some(at));
    }
    root.jumps.note(100, 200);
    root.jumps.note(300, 500);
    check(&root, &root.encode(), Root::decode);
    assert_eq!(
        Root::decode(&root.encode()).unwrap().runs.last(Run::Verify),
        Some(12)
    );
}

#[test]
fn a_stamp_within_a_jump_counts_as_its_end() {
    let mut jumps = Jumps::default();
    jumps.note(100, 200);
    jumps.note(300, 500);
    let stands_for = [
        (99, 99),
        (100, 200),
        (199, 200),
        (200, 200),
        (300, 500),
        (499, 500),
        (500, 500),
    ];
    for (stamp, moment) in stands_for {
        assert_eq!(jumps.settle(stamp), moment, "{stamp}");
    }
    // A jump that is none is not noted; the oldest of three is forgotten.
    jumps.note(600, 600);
    assert_eq!(jumps.settle(100), 200);
    jumps.note(600, 601);
    assert_eq!(jumps.settle(100), 100);
    assert_eq!(jumps.settle(600), 601);
}

proptest! {
    #[test]
    fn a_record_key_is_read_as_it_was_written_and_nothing_else_is_one(
        space in 0..=12_u8,
        rest in proptest::collection::vec(any::<u8>(), 0..60),
        cut in 0..50_usize,
    ) {
        for length in [0, 4, 8, 16, 24, 36, 48, cut] {
            let mut bytes = vec![space];
            bytes.extend(rest.iter().chain(std::iter::repeat(&7)).take(length));
            if let Some(key) = RecordKey::from_bytes(&bytes) {
                prop_assert_eq!(key.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn every_record_key_is_read_again(ids in any::<[[u8; 16]; 3]>(), token in any::<[u8; 8]>(), number in any::<u64>()) {
        let [a, b, c] = ids;
        for key in [
            RecordKey::Root,
            RecordKey::Head(FileTag(a)),
            RecordKey::Dirent(TenantId(a), NodeId(b), NameTag(c)),
            RecordKey::Chunk(TenantId(a), ContentId(b), number as u32),
            RecordKey::Policy(number as u32),
            RecordKey::Job(JobId(a)),
            RecordKey::Audit(TenantId(a), number),
            RecordKey::Token(TokenId(token)),
        ] {
            let bytes = key.to_bytes();
            prop_assert!(RecordKey::from_bytes(&bytes) == Some(key));
            for shorter in 0..bytes.len() {
                let cut = RecordKey::from_bytes(&bytes[..shorter]);
                prop_assert!(cut.is_none());
            }
        }
    }
}
