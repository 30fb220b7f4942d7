//! Export and import: what goes out comes back the same, nothing gets past the line of a write,
//! and nothing is written or read outside the directory that was named.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use strongroom::backend::{Backend, MemoryBackend, MemoryKeyStore};
use strongroom::clock::ManualClock;
use strongroom::policy::{self, Policy};
use strongroom::transfer::{
    ExportOptions, ExportOutcome, ExportReport, ExportSink, FromDirectory, ImportOptions,
    ImportOutcome, ImportReport, ImportSource, SinkError, SourceEntry, SourceKind, ToDirectory,
};
use strongroom::{Code, Depth, Tenant, Vault};

use common::key_line;

/// Any legal name, nothing scanned.
const OPEN: &str = "[paths]\nportable_names = false\nread_only = []\n[redaction]\nrule_packs = []\n[redaction.actions]\n";

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and some bytes \xff\x00";
const JPEG: &[u8] = b"\xFF\xD8\xFF\xE0 and some bytes \x00";

fn policy(text: &str) -> Policy {
    policy::load(text, "test").unwrap()
}

fn vault(text: &str) -> Vault {
    Vault::builder()
        .on(
            Arc::new(MemoryBackend::new()),
            Arc::new(MemoryKeyStore::new()),
        )
        .key_source(key_line())
        .create(true)
        .policy(policy(text))
        .open()
        .unwrap()
}

fn create(tenant: &Tenant, path: &str, text: &str) {
    let reply = tenant.create(path, text).unwrap();
    assert!(!reply.is_error, "{:?}", reply.as_text());
}

/// A place in memory: paths with contents, `None` for directories.
#[derive(Default)]
struct Shelf {
    entries: BTreeMap<String, Option<Vec<u8>>>,
    modified: BTreeMap<String, u64>,
    unholdable: Option<&'static str>,
    is_finished: bool,
}

impl ExportSink for Shelf {
    fn directory(&mut self, path: &str, _modified: u64) -> Result<(), SinkError> {
        if self.unholdable == Some(path) {
            return Err(SinkError::Name("no such name here"));
        }
        assert!(self.entries.insert(path.to_owned(), None).is_none());
        Ok(())
    }

    fn file(&mut self, path: &str, content: &[u8], modified: u64) -> Result<(), SinkError> {
        if self.unholdable == Some(path) {
            return Err(SinkError::Name("no such name here"));
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            assert_eq!(self.entries.get(above), Some(&None), "{path}");
        }
        let content = Some(content.to_vec());
        assert!(self.entries.insert(path.to_owned(), content).is_none());
        self.modified.insert(path.to_owned(), modified);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.is_finished = true;
        Ok(())
    }
}

impl Shelf {
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = self.entries.iter();
        files
            .filter_map(|(path, content)| Some((path.clone(), content.clone()?)))
            .collect()
    }
}

fn export(tenant: &Tenant) -> Shelf {
    let mut shelf = Shelf::default();
    let report = tenant.export(&mut shelf, ExportOptions::new(), |_, _| ());
    assert!(report.failure.is_none(), "{report:?}");
    assert_eq!(report.damaged + report.not_held, 0, "{report:?}");
    assert!(shelf.is_finished);
    shelf
}

type Told = Vec<(String, ImportOutcome)>;

fn import(
    tenant: &Tenant,
    source: &mut dyn ImportSource,
    options: ImportOptions,
) -> (ImportReport, Told) {
    let mut told = Vec::new();
    let report = tenant.import(source, options, |path, outcome| {
        told.push((path.to_owned(), outcome.clone()));
    });
    (report, told)
}

fn stored(bytes: u64, removed: u64) -> ImportOutcome {
    ImportOutcome::Stored { bytes, removed }
}

fn refusal<'t>(told: &'t Told, path: &str) -> &'t str {
    let found = told.iter().find(|(name, _)| name == path);
    match found {
        Some((_, ImportOutcome::Refused(why))) => why,
        other => panic!("{path}: {other:?} in {told:?}"),
    }
}

/// A source in memory.
struct Files<'a>(Vec<(&'a [u8], &'a [u8])>);

impl ImportSource for Files<'_> {
    fn visit(
        &mut self,
        each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        for (name, content) in &self.0 {
            let bytes = content.len() as u64;
            let mut content = *content;
            let content = &mut content;
            if each(SourceEntry::new(name, SourceKind::File { bytes, content })).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn files<'a>(list: &[(&'a str, &'a str)]) -> Files<'a> {
    Files(
        list.iter()
            .map(|(a, b)| (a.as_bytes(), b.as_bytes()))
            .collect(),
    )
}

// ---- the law

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z0-9_]{1,8}",
        1 => "\\.[a-z]{1,4}",
        1 => "[a-z]{1,4}\\.(png|jpg|jpeg|md|PNG)",
        1 => "[a-z]{90,230}",
        1 => "[ -.0-~]{1,12}",
        2 => "\\PC{1,6}",
        1 => Just("e\u{301}\u{df}\u{130}".to_owned()),
        1 => Just("node_modules".to_owned()),
        1 => Just("100% '\"$(rm -rf)`*?<>|: --x".to_owned()),
    ]
}

fn content() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just(String::new()),
        3 => "[a-z\n]{0,40}",
        2 => any::<String>(),
        1 => "(\r\n|\n|\u{feff}|\t| |\u{2028}|x){0,30}",
        1 => "[a-z\n]{400,700}",
        1 => Just("line of text\n".repeat(1_000)),
    ]
}

fn tree() -> impl Strategy<Value = Vec<(String, String)>> {
    let path = prop::collection::vec(name(), 1..5).prop_map(|names| names.join("/"));
    prop::collection::vec((path, content()), 0..12)
}

static OPEN_VAULT: LazyLock<Vault> = LazyLock::new(|| vault(OPEN));
static NEXT: AtomicU64 = AtomicU64::new(0);

fn new_tenant() -> Tenant {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    OPEN_VAULT.tenant(&format!("t{number}")).unwrap()
}

/// A tenant with as much of this tree as the store takes.
fn planted(tree: &[(String, String)]) -> (Tenant, BTreeMap<String, Vec<u8>>) {
    let tenant = new_tenant();
    let guard = strongroom::path::Guard::new().portable_names(false);
    let mut planted = BTreeMap::new();
    for (path, text) in tree {
        let path = format!("/memories/{path}");
        let reply = tenant.create(&path, text).unwrap();
        if !reply.is_error {
            let path = guard.check(&path).unwrap();
            let below = path.as_str().strip_prefix("/memories/").unwrap();
            planted.insert(below.to_owned(), text.clone().into_bytes());
        }
    }
    (tenant, planted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn through_a_directory_everything_comes_back_the_same(tree in tree()) {
        let (tenant, planted) = planted(&tree);
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("out");
        let mut sink = ToDirectory::create(&out).unwrap();
        let report = tenant.export(&mut sink, ExportOptions::new(), |_, _| ());
        prop_assert!(report.failure.is_none() && report.not_held == 0, "{:?}", report);
        prop_assert_eq!(report.files, planted.len() as u64);
        prop_assert_eq!(report.bytes, planted.values().map(|text| text.len() as u64).sum::<u64>());
        let back = new_tenant();
        let mut source = FromDirectory::open(&out).unwrap();
        let (report, told) = import(&back, &mut source, ImportOptions::new());
        prop_assert!(report.failure.is_none() && report.refused == 0, "{:?} {:?}", report, told);
        prop_assert_eq!(report.stored, planted.len() as u64);
        prop_assert_eq!(export(&back).files(), planted);
    }

    #[cfg(feature = "tar")]
    #[test]
    fn through_an_archive_everything_comes_back_the_same(tree in tree()) {
        use strongroom::transfer::{FromTar, ToTar};

        let (tenant, planted) = planted(&tree);
        let mut sink = ToTar::new(Vec::new());
        let report = tenant.export(&mut sink, ExportOptions::new(), |_, _| ());
        prop_assert!(report.failure.is_none() && report.not_held == 0, "{:?}", report);
        let archive = sink.into_inner();
        prop_assert_eq!(archive.len() % 512, 0);
        let back = new_tenant();
        let (report, told) = import(&back, &mut FromTar::new(&*archive), ImportOptions::new());
        prop_assert!(report.failure.is_none() && report.refused == 0, "{:?} {:?}", report, told);
        prop_assert_eq!(export(&back).files(), planted.clone());
        // Another reader sees the same.
        let mut theirs = BTreeMap::new();
        for entry in tar::Archive::new(&*archive).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            let mode = entry.header().mode().unwrap();
            if entry.header().entry_type().is_dir() {
                prop_assert_eq!(mode, 0o700);
            } else {
                prop_assert_eq!(mode, 0o600);
                let mut content = Vec::new();
                entry.read_to_end(&mut content).unwrap();
                theirs.insert(path, content);
            }
        }
        prop_assert_eq!(theirs, planted);
        // Cut anywhere, an archive is never taken for a whole one.
        let cut = archive.len() - 1_024;
        let cut = cut - cut / 3;
        let report = new_tenant().import(&mut FromTar::new(&archive[..cut]), ImportOptions::new(), |_, _| ());
        prop_assert!(report.failure.is_some());
    }

    #[cfg(feature = "tar")]
    #[test]
    fn any_bytes_as_an_archive_end_in_a_report(blocks in prop::collection::vec(any::<u8>(), 0..3_000), at in 0_usize..3_000, byte: u8) {
        use strongroom::transfer::{FromTar, ToTar};

        let tenant = new_tenant();
        let _ = import(&tenant, &mut FromTar::new(&*blocks), ImportOptions::new());
        create(&tenant, "/memories/a/b.md", "text\n");
        let mut sink = ToTar::new(Vec::new());
        let _ = tenant.export(&mut sink, ExportOptions::new(), |_, _| ());
        let mut archive = sink.into_inner();
        let at = at % archive.len();
        archive[at] = byte;
        let _ = import(&new_tenant(), &mut FromTar::new(&*archive), ImportOptions::new());
    }

    #[test]
    fn a_dry_run_foretells_the_run(tree in tree(), overwrite: bool) {
        let tenant = new_tenant();
        create(&tenant, "/memories/aaaa", "there");
        let list: Vec<(&str, &str)> = tree.iter().chain(&tree).map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let options = ImportOptions::new().overwrite(overwrite);
        let before = export(&tenant).entries;
        let dry = import(&tenant, &mut files(&list), options.dry_run(true));
        prop_assert_eq!(&export(&tenant).entries, &before);
        let done = import(&tenant, &mut files(&list), options);
        prop_assert_eq!(dry.1, done.1);
        prop_assert_eq!(format!("{:?}", dry.0), format!("{:?}", done.0));
    }
}

// ---- export

#[test]
fn hidden_denied_and_empty_things_are_exported_with_private_modes_and_their_times() {
    let clock = Arc::new(ManualClock::at(1_767_225_600_123));
    let backend: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let keys = Arc::new(MemoryKeyStore::new());
    let open = || {
        Vault::builder()
            .on(backend.clone(), keys.clone())
            .key_source(key_line())
            .clock(clock.clone())
            .create(true)
            .open()
            .unwrap()
    };
    let vault = open();
    let tenant = vault.tenant("a").unwrap();
    create(&tenant, "/memories/.hidden/x.md", "1");
    create(&tenant, "/memories/node_modules/y.md", "2");
    create(&tenant, "/memories/secret/z.md", "3");
    create(&tenant, "/memories/empty/w.md", "4");
    assert!(!tenant.delete("/memories/empty/w.md").unwrap().is_error);
    vault
        .set_policy(&policy("[paths]\ndenied = [\"/memories/secret/**\"]\n"))
        .unwrap();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let mut sink = ToDirectory::create(&out).unwrap();
    let mut told = Vec::new();
    let report = tenant.export(&mut sink, ExportOptions::new(), |path, outcome| {
        told.push((path.to_owned(), outcome.clone()));
    });
    assert!(report.failure.is_none());
    assert_eq!((report.files, report.directories, report.stale), (3, 4, 3));
    assert_eq!(told[1].0, "/memories/.hidden/x.md");
    assert_eq!(told[1].1, ExportOutcome::File(1));
    for file in [".hidden/x.md", "node_modules/y.md", "secret/z.md"] {
        let meta = fs::symlink_metadata(out.join(file)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o7777, 0o600, "{file}");
        assert_eq!(
            (meta.mtime(), meta.mtime_nsec()),
            (1_767_225_600, 123_000_000)
        );
    }
    for directory in ["", ".hidden", "node_modules", "secret", "empty"] {
        let meta = fs::symlink_metadata(out.join(directory)).unwrap();
        assert!(meta.is_dir());
        assert_eq!(meta.permissions().mode() & 0o7777, 0o700, "{directory}");
    }
}

#[test]
fn expired_files_are_not_exported() {
    let clock = Arc::new(ManualClock::at(1_767_225_600_000));
    let vault = Vault::builder()
        .on(
            Arc::new(MemoryBackend::new()),
            Arc::new(MemoryKeyStore::new()),
        )
        .key_source(key_line())
        .clock(clock.clone())
        .policy(policy("[retention]\nexpire_after_last_access = \"7d\"\n"))
        .create(true)
        .open()
        .unwrap();
    let tenant = vault.tenant("a").unwrap();
    create(&tenant, "/memories/old.md", "1");
    clock.set(1_767_225_600_000 + 6 * 86_400_000);
    create(&tenant, "/memories/new.md", "2");
    clock.set(1_767_225_600_000 + 8 * 86_400_000);
    let paths: Vec<_> = export(&tenant).files().into_keys().collect();
    assert_eq!(paths, ["new.md"]);
}

#[test]
fn export_goes_only_to_an_empty_directory_and_follows_no_link() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/x"), "mine").unwrap();
    fs::create_dir(at("empty")).unwrap();
    symlink(at("empty"), at("link")).unwrap();
    fs::write(at("file"), "mine").unwrap();
    let kind = |path: &Path| {
        ToDirectory::create(path)
            .map(|_| ())
            .map_err(|error| error.kind())
    };
    assert_eq!(kind(&at("full")), Err(io::ErrorKind::DirectoryNotEmpty));
    assert_eq!(kind(&at("link")), Err(io::ErrorKind::NotADirectory));
    assert_eq!(kind(&at("link/")), Err(io::ErrorKind::NotADirectory));
    assert_eq!(kind(&at("link/.")), Err(io::ErrorKind::NotADirectory));
    assert_eq!(kind(&at("file")), Err(io::ErrorKind::NotADirectory));
    assert_eq!(kind(&at("none/below")), Err(io::ErrorKind::NotFound));
    assert_eq!(kind(&at("empty")), Ok(()));
}

#[test]
fn what_somebody_puts_into_the_target_meanwhile_is_neither_followed_nor_overwritten() {
    let vault = vault(OPEN);
    let tenant = vault.tenant("a").unwrap();
    for path in ["a.md", "b/c.md", "d/e.md", "f.md"] {
        create(&tenant, &format!("/memories/{path}"), "from the store");
    }
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("elsewhere")).unwrap();
    fs::write(at("victim"), "mine").unwrap();
    let mut sink = ToDirectory::create(at("out")).unwrap();
    symlink(at("victim"), at("out/a.md")).unwrap();
    symlink(at("elsewhere"), at("out/b")).unwrap();
    fs::write(at("out/f.md"), "mine").unwrap();
    let mut not_held = Vec::new();
    let report = tenant.export(&mut sink, ExportOptions::new(), |path, outcome| {
        if matches!(outcome, ExportOutcome::NotHeld(_)) {
            not_held.push(path.to_owned());
        }
    });
    assert!(report.failure.is_none());
    assert_eq!(
        not_held,
        ["/memories/a.md", "/memories/b", "/memories/f.md"]
    );
    assert_eq!((report.files, report.not_held), (1, 3));
    assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
    assert_eq!(fs::read(at("out/f.md")).unwrap(), b"mine");
    assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
    assert_eq!(fs::read(at("out/d/e.md")).unwrap(), b"from the store");
}

#[test]
fn a_directory_that_is_swapped_for_a_link_during_an_export_ends_it() {
    let vault = vault(OPEN);
    let tenant = vault.tenant("a").unwrap();
    create(&tenant, "/memories/a/b.md", "from the store");
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("elsewhere")).unwrap();
    let mut sink = ToDirectory::create(at("out")).unwrap();
    let report = tenant.export(&mut sink, ExportOptions::new(), |path, _| {
        if path == "/memories/a" {
            fs::remove_dir(at("out/a")).unwrap();
            symlink(at("elsewhere"), at("out/a")).unwrap();
        }
    });
    assert!(report.failure.is_some());
    assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
}

#[test]
fn names_that_the_target_cannot_hold_are_reported_and_the_rest_is_exported() {
    let vault = vault(OPEN);
    let tenant = vault.tenant("a").unwrap();
    for path in ["a/b.md", "a/c.md", "d.md", "e.md"] {
        create(&tenant, &format!("/memories/{path}"), "x");
    }
    for (unholdable, left) in [("a", 2), ("d.md", 3), ("a/b.md", 3)] {
        let mut shelf = Shelf {
            unholdable: Some(unholdable),
            ..Shelf::default()
        };
        let report = tenant.export(&mut shelf, ExportOptions::new(), |_, _| ());
        assert!(report.failure.is_none());
        assert_eq!(
            (report.not_held, shelf.files().len()),
            (1, left),
            "{unholdable}"
        );
    }
}

#[test]
fn a_target_that_fails_ends_the_export_with_the_reason() {
    struct Full;
    impl ExportSink for Full {
        fn directory(&mut self, _: &str, _: u64) -> Result<(), SinkError> {
            Ok(())
        }
        fn file(&mut self, _: &str, _: &[u8], _: u64) -> Result<(), SinkError> {
            Err(io::Error::from(io::ErrorKind::StorageFull).into())
        }
        fn finish(&mut self) -> io::Result<()> {
            panic!("an export that did not come to its end was finished");
        }
    }
    let vault = vault(OPEN);
    let tenant = vault.tenant("a").unwrap();
    create(&tenant, "/memories/a.md", "x");
    let report = tenant.export(&mut Full, ExportOptions::new(), |_, _| ());
    assert_eq!(report.failure.unwrap().code(), Code::NoSpace);
    assert_eq!(report.files, 0);
}

/// Each record of a store in turn is damaged, or lost. Whatever is exported is right, whatever
/// is not is told, and without `salvage` the first damage ends it.
#[test]
fn salvage_exports_what_checks_out_and_names_what_does_not() {
    let backend = Arc::new(MemoryBackend::new());
    let keys = Arc::new(MemoryKeyStore::new());
    let open = || {
        let backend: Arc<dyn Backend> = backend.clone();
        Vault::builder()
            .on(backend, keys.clone())
            .key_source(key_line())
            .create(true)
            .open()
    };
    let vault = open().unwrap();
    let tenant = vault.tenant("a").unwrap();
    let paths = ["a.md", "b/c.md", "b/d/e.md", "b/d/f.md", "g/h.md"];
    for path in paths {
        create(&tenant, &format!("/memories/{path}"), &path.repeat(20));
    }
    let _held = tenant.add_hold("/memories/g", "a reason", None).unwrap();
    let whole = export(&tenant).files();
    let before = backend.records();
    let (mut opened, mut partial, mut past_holds) = (0, 0, 0);
    for (key, value) in &before {
        for lost in [false, true] {
            let mut altered = value.clone();
            *altered.last_mut().unwrap() ^= 1;
            backend.tamper(key, (!lost).then_some(altered));
            let mut shelf = Shelf::default();
            let mut told = Vec::new();
            let options = ExportOptions::new().salvage(true);
            let report = tenant.export(&mut shelf, options, |path, outcome| {
                if let ExportOutcome::Damaged(what) = outcome {
                    told.push((path.to_owned(), what.clone()));
                }
            });
            let plain = tenant.export(&mut Shelf::default(), ExportOptions::new(), |_, _| ());
            let files = shelf.files();
            assert!(
                files
                    .iter()
                    .all(|(path, content)| whole.get(path) == Some(content))
            );
            for path in whole.keys().filter(|path| !files.contains_key(*path)) {
                let path = format!("/memories/{path}");
                let lies_in = |(lost, _): &(String, String)| {
                    path == *lost || path.starts_with(&format!("{lost}/"))
                };
                assert!(told.iter().any(lies_in), "{path}: {told:?}");
            }
            assert!(report.failure.is_none(), "{report:?}");
            assert_eq!(report.damaged, told.len() as u64);
            assert_eq!(
                report.damaged > 0,
                plain.failure.is_some(),
                "{told:?} {plain:?}"
            );
            if let Some(failure) = plain.failure {
                assert_eq!(failure.code(), Code::Integrity);
            }
            opened += 1;
            partial += u32::from(!files.is_empty() && files.len() < whole.len());
            past_holds += u32::from(told.iter().any(|(_, what)| what.contains("holds")));
            if past_holds > 0 && told.len() == 1 && told[0].1.contains("holds") {
                assert_eq!(files, whole);
            }
            backend.tamper(key, Some(value.clone()));
        }
    }
    assert_eq!(opened, 2 * before.len());
    // Five contents and five entries below /memories, each altered and lost. One of the
    // three in /memories itself takes all along.
    assert_eq!(partial, 2 * 10);
    assert_eq!(past_holds, 2);
}

// ---- import

#[test]
fn every_step_of_the_line_binds_an_import() {
    let vault = vault(
        "[limits]\nmax_file_bytes = \"1KiB\"\nmax_line_chars = 200\nmax_files = 5\n[paths]\nread_only = [\"/memories/policies/**\"]\ndenied = [\"/memories/secret/**\"]\n",
    );
    let tenant = vault.tenant("a").unwrap();
    let token = [
        "gh",
        "p_",
        "Zx81Qm4Rt7",
        "Yv2Kd9Lw3P",
        "b6Nc5Hs0Jf",
        "8GaXoe",
    ]
    .concat();
    let with_token = format!("use {token}\n");
    let named = format!("{token}.md");
    let (long, wide) = ("x\n".repeat(600), "y".repeat(300));
    let list = [
        ("fine.md", "text\n"),
        ("token.md", with_token.as_str()),
        (named.as_str(), "text\n"),
        ("../up.md", "text\n"),
        ("a/../../up.md", "text\n"),
        ("/etc/passwd", "text\n"),
        ("con.md", "text\n"),
        ("long.md", long.as_str()),
        ("wide.md", wide.as_str()),
        ("policies/p.md", "text\n"),
        ("secret/s.md", "text\n"),
        ("fine.md/below.md", "text\n"),
        ("fine.md", "again\n"),
        ("", "text\n"),
        (".", "text\n"),
        ("a\u{202e}b.md", "text\n"),
    ];
    let (report, told) = import(&tenant, &mut files(&list), ImportOptions::new());
    assert!(report.failure.is_none());
    assert_eq!((report.stored, report.cleaned, report.removed), (2, 1, 1));
    assert_eq!((report.exists, report.refused), (1, 13));
    assert_eq!(told.len(), list.len());
    assert_eq!(told[0], ("/memories/fine.md".to_owned(), stored(5, 0)));
    assert!(matches!(
        told[1].1,
        ImportOutcome::Stored { removed: 1, .. }
    ));
    assert_eq!(told[12].1, ImportOutcome::Exists);
    assert!(!format!("{told:?}").contains(&token));
    assert!(!format!("{told:?}").contains('\u{202e}'));
    assert!(refusal(&told, "../up.md").contains("would escape"));
    assert!(refusal(&told, "/etc/passwd").contains("absolute"));
    assert_eq!(
        refusal(&told, "/memories/long.md"),
        "Error: /memories/long.md was not written: the file would be too large, 1200 of 1024 bytes. Shorten it, or split it into several files",
    );
    assert!(refusal(&told, "/memories/wide.md").contains("300 of 200"));
    assert!(refusal(&told, "/memories/policies/p.md").contains("read-only"));
    let list = [
        ("policies/p.md", with_token.as_str()),
        ("secret/s.md", "text\n"),
        ("con.md", "text\n"),
        ("long.md", long.as_str()),
        ("x/a.md", "text\n"),
        ("x/b.md", "text\n"),
    ];
    let options = ImportOptions::new().as_operator(true);
    let dry = import(&tenant, &mut files(&list), options.dry_run(true));
    let (report, told) = import(&tenant, &mut files(&list), options);
    assert_eq!(dry.1, told);
    assert_eq!((report.stored, report.removed, report.refused), (3, 1, 3));
    assert!(refusal(&told, "/memories/x/b.md").contains("6 of 5"));
    let files = export(&tenant).files();
    let expected = [
        "fine.md",
        "policies/p.md",
        "secret/s.md",
        "token.md",
        "x/a.md",
    ];
    assert_eq!(files.keys().collect::<Vec<_>>(), expected);
    assert!(!format!("{:?}", String::from_utf8_lossy(&files["token.md"])).contains(&token));
}

#[test]
fn holds_bind_an_import_that_overwrites() {
    let vault = vault("");
    let tenant = vault.tenant("a").unwrap();
    create(&tenant, "/memories/held/a.md", "old");
    create(&tenant, "/memories/b.md", "old");
    let _held = tenant.add_hold("/memories/held", "a reason", None).unwrap();
    let options = ImportOptions::new().overwrite(true).as_operator(true);
    let list = [("held/a.md", "new"), ("b.md", "new")];
    let (report, told) = import(&tenant, &mut files(&list), options);
    assert_eq!((report.stored, report.refused), (1, 1));
    assert!(refusal(&told, "/memories/held/a.md").contains("under a hold"));
    let files = export(&tenant).files();
    assert_eq!(files["held/a.md"], b"old");
    assert_eq!(files["b.md"], b"new");
}

#[test]
fn images_come_in_only_when_asked_for_and_text_under_their_names_always() {
    let vault = vault("");
    let tenant = vault.tenant("a").unwrap();
    let mut list = Files(vec![
        (b"a.png", PNG),
        (b"b.JPG", JPEG),
        (b"c.jpeg", JPEG),
        (b"wrong.png", JPEG),
        (b"text.png", b"only text\n"),
        (b"no-image.md", PNG),
        (b"bytes.bin", b"\xff\xfe"),
        (b"not\xffutf8.md", b"text"),
    ]);
    let (report, told) = import(&tenant, &mut list, ImportOptions::new());
    assert_eq!((report.images, report.stored, report.refused), (3, 1, 4));
    assert_eq!(
        told[0],
        ("/memories/a.png".to_owned(), ImportOutcome::Image)
    );
    assert!(refusal(&told, "not\\u{FFFD}utf8.md").contains("UTF-8"));
    let (report, _) = import(&tenant, &mut list, ImportOptions::new().images(true));
    assert_eq!((report.stored, report.exists, report.refused), (3, 1, 4));
    let files = export(&tenant).files();
    assert_eq!((&files["a.png"][..], &files["b.JPG"][..]), (PNG, JPEG));
    assert_eq!(files.len(), 4);
    vault
        .set_policy(&policy("[write]\nimages = false\n"))
        .unwrap();
    let options = ImportOptions::new().images(true).overwrite(true);
    let (report, told) = import(&tenant, &mut list, options);
    assert_eq!((report.stored, report.refused), (1, 7));
    assert!(refusal(&told, "/memories/a.png").starts_with("Error: /memories/a.png was not"));
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    struct Huge<'a>(&'a Cell<u64>);
    impl Read for Huge<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.set(self.0.get() + buffer.len() as u64);
            buffer.fill(b'\n');
            Ok(buffer.len())
        }
    }
    struct Source<'a>(&'a Cell<u64>, u64);
    impl ImportSource for Source<'_> {
        fn visit(
            &mut self,
            each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
        ) -> io::Result<()> {
            let content = &mut Huge(self.0);
            let bytes = self.1;
            let _ended = each(SourceEntry::new(
                b"a.md",
                SourceKind::File { bytes, content },
            ));
            let _ended = each(SourceEntry::new(
                b"b.png",
                SourceKind::File { bytes, content },
            ));
            Ok(())
        }
    }
    let vault = vault("");
    let tenant = vault.tenant("a").unwrap();
    let read = Cell::new(0);
    for bytes in [u64::MAX, 1 << 40, 4 << 20] {
        let (report, _) = import(&tenant, &mut Source(&read, bytes), ImportOptions::new());
        assert_eq!((report.refused, read.get()), (2, 0), "{bytes}");
    }
    // Longer than it says: not stored, and read no further than that.
    let (report, told) = import(&tenant, &mut Source(&read, 100), ImportOptions::new());
    assert_eq!((report.refused, report.stored), (2, 0));
    assert!(refusal(&told, "/memories/a.md").contains("not as long as it says"));
    assert!(read.get() < 1_000);
}

#[test]
fn an_import_that_was_ended_goes_on_where_it_stopped() {
    let vault = vault("");
    let tenant = vault.tenant("a").unwrap();
    let list = [("a.md", "1"), ("b.md", "2"), ("c.md", "3")];
    struct Ends<'a>(Files<'a>);
    impl ImportSource for Ends<'_> {
        fn visit(
            &mut self,
            each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
        ) -> io::Result<()> {
            self.0.0.truncate(2);
            self.0.visit(each)?;
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
    let (report, _) = import(&tenant, &mut Ends(files(&list)), ImportOptions::new());
    assert_eq!(report.stored, 2);
    assert_eq!(
        report.failure.unwrap().to_string(),
        "read what is to be imported: unexpected end of file"
    );
    let (report, _) = import(&tenant, &mut files(&list), ImportOptions::new());
    assert_eq!((report.exists, report.stored), (2, 1));
    assert!(report.failure.is_none());
    assert!(vault.verify(Depth::Full).unwrap().problems.is_empty());
}

#[test]
fn a_store_that_can_only_be_read_ends_an_import() {
    let backend: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let keys = Arc::new(MemoryKeyStore::new());
    let open = |read_only| {
        Vault::builder()
            .on(backend.clone(), keys.clone())
            .key_source(key_line())
            .create(true)
            .read_only(read_only)
            .open()
            .unwrap()
    };
    open(false).close().unwrap();
    let vault = open(true);
    let tenant = vault.tenant("a").unwrap();
    let list = [("a.md", "1"), ("b.md", "2")];
    let (dry, told) = import(
        &tenant,
        &mut files(&list),
        ImportOptions::new().dry_run(true),
    );
    assert!(dry.failure.is_none());
    assert_eq!(told[0].1, stored(1, 0));
    let (report, told) = import(&tenant, &mut files(&list), ImportOptions::new());
    assert!(report.failure.is_some());
    assert!(told.is_empty());
}

#[test]
fn links_and_special_files_of_a_directory_are_listed_and_not_opened() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir_all(at("in/real")).unwrap();
    fs::create_dir(at("outside")).unwrap();
    fs::write(at("outside/secret.md"), "outside").unwrap();
    fs::write(at("in/real/a.md"), "inside").unwrap();
    symlink(at("outside/secret.md"), at("in/file-link.md")).unwrap();
    symlink(at("outside"), at("in/dir-link")).unwrap();
    symlink("..", at("in/up")).unwrap();
    symlink("nowhere", at("in/broken")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("in/fifo.md"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("in/socket")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff.md");
    fs::write(home.path().join("in").join(odd), "text").unwrap();
    let deep = (0..40).fold(at("in/deep"), |path, _| path.join("d"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("x.md"), "text").unwrap();
    let vault = vault("");
    let tenant = vault.tenant("a").unwrap();
    let mut source = FromDirectory::open(at("in")).unwrap();
    let (report, told) = import(&tenant, &mut source, ImportOptions::new());
    assert!(report.failure.is_none());
    assert_eq!((report.stored, report.refused), (1, 8), "{told:?}");
    for link in ["file-link.md", "dir-link", "up", "broken"] {
        assert_eq!(refusal(&told, link), "it is a symbolic link");
    }
    for special in ["fifo.md", "socket"] {
        assert_eq!(refusal(&told, special), "it is no regular file");
    }
    assert_eq!(
        export(&tenant).files().into_keys().collect::<Vec<_>>(),
        ["real/a.md"]
    );
}

#[test]
fn reports_of_nothing_are_empty() {
    let vault = vault("");
    let tenant = vault.tenant("a").unwrap();
    let report: ExportReport =
        tenant.export(&mut Shelf::default(), ExportOptions::new(), |_, _| ());
    assert_eq!(
        (report.files, report.directories, report.damaged),
        (0, 0, 0)
    );
    let (report, told) = import(&tenant, &mut files(&[]), ImportOptions::new());
    assert_eq!((report.stored, report.refused, told.len()), (0, 0, 0));
    assert!(vault.stats().unwrap().tenants.is_empty());
}

/// Files that exist already used to have an entry each that said they were imported.
#[test]
fn what_exists_already_is_neither_written_nor_logged() {
    let vault = vault("[audit]\nenabled = true\n");
    let tenant = vault.tenant("a").unwrap();
    let list = [("a.md", "text\n"), ("b/c.md", "text\n")];
    let first = import(&tenant, &mut files(&list), ImportOptions::new()).0;
    assert_eq!((first.stored, first.exists), (2, 0));
    let before = vault.stats().unwrap().commits;
    let again = import(&tenant, &mut files(&list), ImportOptions::new()).0;
    assert_eq!((again.stored, again.exists), (0, 2));
    assert_eq!(vault.stats().unwrap().commits, before);
    let replaced = import(
        &tenant,
        &mut files(&list),
        ImportOptions::new().overwrite(true),
    )
    .0;
    assert_eq!((replaced.stored, replaced.exists), (2, 0));
    let mut entries = 0;
    vault.audit(Some("a"), |_, _| entries += 1).unwrap();
    assert_eq!(entries, 4);
}
