//! `strongroom export` and `import` as processes, with hostile archives and directories.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use strongroom::backend::{Backend, Batch, SledBackend};
use tar::{EntryType, Header};
use tempfile::TempDir;

/// A directory with a store `s`, its key file `k`, and two files of tenant `default`.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let made = home.run("init --store s --generate-key k", b"");
        assert_eq!(code(&made), 0, "{made:?}");
        home
    }

    fn filled() -> Self {
        let home = Self::new();
        home.create("/memories/a.md", "one\n");
        home.create("/memories/b/.c.md", "two\n");
        home
    }

    fn create(&self, path: &str, text: &str) {
        let input = json!({"command": "create", "path": path, "file_text": text}).to_string();
        let made = self.on_store("exec", input.as_bytes());
        assert!(!out(&made).contains("is_error"), "{made:?}");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &str, input: &[u8]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strongroom"));
        command
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STRONGROOM_")) {
            command.env_remove(name);
        }
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // The child may end without having read it.
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        let _written = writer.join().unwrap();
        output
    }

    fn on_store(&self, words: &str, input: &[u8]) -> Output {
        self.run(&format!("{words} --store s --key-file k"), input)
    }

    /// Imports an archive as a new tenant, and returns the exit code and what became of each.
    fn import(&self, archive: &[u8]) -> (i32, Vec<(String, String)>) {
        let done = self.on_store("import --tar - --json", archive);
        let rows = json(&done)["entries"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let rows = rows.iter().map(|row| {
            let result = match &row["why"] {
                Value::Null => text(&row["result"]),
                why => text(why),
            };
            (text(&row["path"]), result)
        });
        (code(&done), rows.collect())
    }

    /// The files of tenant `default`, by way of an export.
    fn files(&self) -> Vec<(String, String)> {
        let done = self.on_store("export --tar -", b"");
        assert_eq!(code(&done), 0, "{done:?}");
        let mut files = Vec::new();
        for entry in tar::Archive::new(&*done.stdout).entries().unwrap() {
            let mut entry = entry.unwrap();
            if entry.header().entry_type().is_file() {
                let path = entry.path().unwrap().to_str().unwrap().to_owned();
                let mut text = String::new();
                std::io::Read::read_to_string(&mut entry, &mut text).unwrap();
                files.push((path, text));
            }
        }
        files
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("ended by itself")
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Ended with this code, and said on stderr in its last two lines what and what to do.
fn assert_failed(output: &Output, expected: i32, what: &str) {
    assert_eq!(code(output), expected, "{output:?}");
    let lines: Vec<&str> = err(output).lines().rev().take(2).collect();
    assert!(lines[1].starts_with("strongroom: failed to "), "{output:?}");
    assert!(lines[1].contains(what), "{output:?}");
    assert!(lines[0].ends_with('.'), "{output:?}");
}

/// One raw entry: no library's idea of what a name may be stands in the way.
fn entry(kind: EntryType, name: &str, link: &str, size: u64, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o4777);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.name[..name.len()].copy_from_slice(name.as_bytes());
    gnu.linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    let mut entry = header.as_bytes().to_vec();
    entry.extend_from_slice(content);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

fn file(name: &str, text: &str) -> Vec<u8> {
    entry(
        EntryType::Regular,
        name,
        "",
        text.len() as u64,
        text.as_bytes(),
    )
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut archive = entries.concat();
    archive.extend_from_slice(&[0; 1_024]);
    archive
}

fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut text = String::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let length = (rest..)
            .find(|length| length.to_string().len() + rest == *length)
            .unwrap();
        text.push_str(&format!("{length} {key}={value}\n"));
    }
    entry(
        EntryType::XHeader,
        "pax",
        "",
        text.len() as u64,
        text.as_bytes(),
    )
}

#[test]
fn a_directory_and_back_and_the_report_of_both() {
    let home = Home::filled();
    let done = home.on_store("export --to out", b"");
    assert_eq!(code(&done), 0, "{done:?}");
    assert_eq!(
        out(&done),
        "PATH               RESULT\n\
         /memories/a.md     4 bytes\n\
         /memories/b        directory\n\
         /memories/b/.c.md  4 bytes\n\
         \n\
         files         2\n\
         directories   1\n\
         bytes         8\n\
         damaged       0\n\
         not exported  0\n"
    );
    assert_eq!(err(&done), "");
    assert_eq!(fs::read(home.path("out/b/.c.md")).unwrap(), b"two\n");
    let mode = |name: &str| fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(
        (mode("out"), mode("out/b"), mode("out/a.md")),
        (0o700, 0o700, 0o600)
    );
    let done = home.on_store("import --from out --tenant other/one", b"");
    assert_eq!(code(&done), 0, "{done:?}");
    assert_eq!(
        out(&done),
        "PATH               RESULT\n\
         /memories/a.md     stored\n\
         /memories/b/.c.md  stored\n\
         \n\
         stored           2\n\
         bytes            8\n\
         values removed   0\n\
         existed          0\n\
         images left out  0\n\
         refused          0\n"
    );
    fs::write(home.path("out/a.md"), "password: hunter2hunter2\n").unwrap();
    let done = home.on_store("import --from out --tenant other/one --json", b"");
    assert_eq!(code(&done), 0);
    assert_eq!(json(&done)["exists"], 2);
    assert!(err(&done).contains("--overwrite"), "{done:?}");
    let done = home.on_store(
        "import --from out --tenant other/one --overwrite --dry-run",
        b"",
    );
    assert!(
        out(&done).contains("/memories/a.md     stored, 1 value removed\n"),
        "{done:?}"
    );
    assert!(out(&done).ends_with("A dry run: nothing changed.\n"));
    let done = home.on_store(
        "import --from out --tenant other/one --overwrite --json",
        b"",
    );
    assert_eq!(json(&done)["removed"], 1);
    assert_eq!(json(&done)["entries"][0]["removed"], 1);
    assert_eq!(
        code(&home.on_store("export --to back --tenant other/one", b"")),
        0
    );
    let text = fs::read_to_string(home.path("back/a.md")).unwrap();
    assert!(
        text.contains("[REDACTED:") && !text.contains("hunter2"),
        "{text}"
    );
}

#[test]
fn an_archive_and_back_through_files_and_pipes() {
    let home = Home::filled();
    let done = home.on_store("export --tar m.tar --json", b"");
    assert_eq!(code(&done), 0, "{done:?}");
    assert_eq!(json(&done)["complete"], true);
    let mode = fs::metadata(home.path("m.tar"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    let piped = home.on_store("export --tar - --json", b"");
    assert_eq!(code(&piped), 0);
    let report: Value = serde_json::from_str(err(&piped)).unwrap();
    assert_eq!(
        (&report["files"], &report["tenant"]),
        (&json!(2), &json!("default"))
    );
    let list = |archive: &[u8]| -> Vec<String> {
        let mut archive = tar::Archive::new(archive);
        let paths = archive.entries().unwrap();
        paths
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect()
    };
    assert_eq!(list(&piped.stdout), ["a.md", "b/", "b/.c.md"]);
    for (words, input) in [("--tar m.tar", &b""[..]), ("--tar -", &piped.stdout)] {
        let done = home.on_store(&format!("import --tenant t{} {words}", input.len()), input);
        assert_eq!(code(&done), 0, "{done:?}");
        assert!(out(&done).contains("stored           2\n"));
    }
    // What another program packed.
    let packed = Command::new("tar")
        .args(["-c", "-f", "-", "."])
        .current_dir(home.path("s"))
        .output();
    assert!(packed.is_ok(), "these tests need tar");
    fs::create_dir_all(home.path("in/notes")).unwrap();
    fs::write(home.path("in/notes").join("n".repeat(150)), "text\n").unwrap();
    for format in ["gnu", "pax", "ustar", "v7"] {
        let tenant = format!("by-{format}");
        let input = Command::new("tar")
            .args(["--format", format, "-c", "-f", "-", "."])
            .current_dir(home.path("in"))
            .output()
            .unwrap();
        // v7 holds 99 bytes, ustar 100 in the last part.
        let fits = matches!(format, "gnu" | "pax");
        let done = home.on_store(
            &format!("import --tar - --json --tenant {tenant}"),
            &input.stdout,
        );
        assert_eq!(code(&done), 0, "{done:?}");
        assert_eq!(json(&done)["stored"], i32::from(fits), "{format}");
    }
}

#[test]
fn hostile_names_in_an_archive_are_refused_and_listed() {
    let home = Home::new();
    let (exit, rows) = home.import(&archive(&[
        file("/etc/passwd", "absolute"),
        file("../up.md", "up"),
        file("a/../../up.md", "up"),
        file("con.md", "device name"),
        file("a\u{202e}b.md", "bidi"),
        entry(EntryType::Directory, "../dir/", "", 0, b""),
        pax(&[("path", "/root/.ssh/authorized_keys")]),
        file("innocent.md", "by pax"),
        file("./fine.md", "fine"),
        file("fine.md", "duplicate"),
        file("fine.md/below.md", "through a file"),
    ]));
    assert_eq!(exit, 3);
    let find = |path: &str, why: &str| {
        let is_it = |row: &&(String, String)| row.0 == path && row.1.contains(why);
        assert!(rows.iter().any(|row| is_it(&row)), "{path}: {rows:?}");
    };
    find("/etc/passwd", "absolute");
    find("../up.md", "would escape");
    find("a/../../up.md", "would escape");
    find("con.md", "");
    find("a\\u{202E}b.md", "");
    find("../dir/", "would escape");
    find("/root/.ssh/authorized_keys", "absolute");
    find("/memories/fine.md", "stored");
    find("/memories/fine.md", "exists");
    find("/memories/fine.md/below.md", "is a file");
    assert_eq!(rows.len(), 10);
    assert_eq!(home.files(), [("fine.md".to_owned(), "fine".to_owned())]);
}

#[test]
fn links_and_devices_in_an_archive_are_refused_and_lead_nowhere() {
    let home = Home::new();
    fs::create_dir(home.path("outside")).unwrap();
    let outside = home.path("outside");
    let (exit, rows) = home.import(&archive(&[
        entry(
            EntryType::Symlink,
            "link",
            outside.to_str().unwrap(),
            0,
            b"",
        ),
        file("link/planted.md", "through the link"),
        entry(EntryType::Link, "hard.md", "/etc/passwd", 0, b""),
        entry(EntryType::Char, "zero", "", 0, b""),
        entry(EntryType::Block, "disk", "", 0, b""),
        entry(EntryType::Fifo, "fifo", "", 0, b""),
        entry(EntryType::GNUSparse, "sparse", "", 0, b""),
        entry(EntryType::new(b'Z'), "unknown", "", 3, b"abc"),
        pax(&[
            ("GNU.sparse.major", "1"),
            ("GNU.sparse.realsize", "9999999999"),
        ]),
        file("sparse.md", "x"),
    ]));
    assert_eq!(exit, 3);
    let expected = [
        ("link", "it is a symbolic link"),
        ("/memories/link/planted.md", "stored"),
        ("hard.md", "it is a hard link"),
        ("zero", "it is no regular file"),
        ("disk", "it is no regular file"),
        ("fifo", "it is no regular file"),
        ("sparse", "it is a sparse file"),
        ("unknown", "it is no regular file"),
        ("sparse.md", "it is a sparse file"),
    ];
    let rows: Vec<_> = rows.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(rows, expected);
    // In the store it is a directory like any other, outside nothing was made.
    assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
    assert_eq!(home.files()[0].0, "link/planted.md");
}

/// An entry that one program skips with its content and another without: what looks like
/// content to the one is a file to the other.
#[test]
fn an_archive_that_can_be_read_in_two_ways_is_read_in_none() {
    let home = Home::new();
    let hidden = file("hidden.md", "smuggled");
    let with_hidden = |kind| entry(kind, "carrier", "", hidden.len() as u64, &hidden);
    let mut continued = entry(EntryType::GNUSparse, "sparse", "", 0, b"");
    continued[482] = 1;
    continued[148..156].fill(b' ');
    let sum: u32 = continued.iter().map(|byte| u32::from(*byte)).sum();
    continued[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let long_name = entry(EntryType::GNULongName, "././@LongLink", "", 8, b"long.md\0");
    let mut sparse_for_all = pax(&[("GNU.sparse.major", "1")]);
    sparse_for_all[156] = b'g';
    sparse_for_all[148..156].fill(b' ');
    let sum: u32 = sparse_for_all[..512]
        .iter()
        .map(|byte| u32::from(*byte))
        .sum();
    sparse_for_all[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let cases = [
        ("a directory", with_hidden(EntryType::Directory)),
        ("a symbolic link", with_hidden(EntryType::Symlink)),
        ("a hard link", with_hidden(EntryType::Link)),
        ("a FIFO", with_hidden(EntryType::Fifo)),
        ("a device", with_hidden(EntryType::Char)),
        (
            "a sparse file with more headers",
            [continued, hidden.clone()].concat(),
        ),
        (
            "two paths",
            [pax(&[("path", "a.md"), ("path", "b.md")]), hidden.clone()].concat(),
        ),
        (
            "two pax headers",
            [
                pax(&[("path", "a.md")]),
                pax(&[("path", "b.md")]),
                hidden.clone(),
            ]
            .concat(),
        ),
        (
            "two long names",
            [long_name.clone(), long_name.clone(), hidden.clone()].concat(),
        ),
        (
            "a long name and a path",
            [long_name, pax(&[("path", "b.md")]), hidden.clone()].concat(),
        ),
        (
            "a path and a long name",
            [
                pax(&[("path", "b.md")]),
                entry(EntryType::GNULongName, "././@LongLink", "", 8, b"long.md\0"),
                hidden.clone(),
            ]
            .concat(),
        ),
        (
            "sparse for all that follow",
            [sparse_for_all, hidden.clone()].concat(),
        ),
    ];
    for (what, carrier) in cases {
        let done = home.on_store("import --tar - --json", &archive(&[carrier]));
        assert_failed(&done, 1, "invalid data");
        assert_eq!(json(&done)["stored"], 0, "{what}");
    }
    let tenants = home.on_store("tenant list --json", b"");
    assert_eq!(json(&tenants), json!([]), "nothing was stored");
}

#[test]
fn sizes_that_lie_end_the_import_and_keep_what_came_before() {
    let home = Home::new();
    let huge = entry(EntryType::Regular, "huge.md", "", 1 << 60, b"short");
    let cases: [(&str, Vec<u8>, &str); 8] = [
        (
            "a huge size",
            [file("a.md", "1"), huge].concat(),
            "unexpected end of file",
        ),
        (
            "a size past all bounds",
            [
                file("b.md", "1"),
                entry(EntryType::Regular, "huge.md", "", u64::MAX, b""),
            ]
            .concat(),
            "invalid data",
        ),
        (
            "a long name without an end",
            [
                file("c.md", "1"),
                entry(EntryType::GNULongName, "x", "", 1 << 40, b"y"),
            ]
            .concat(),
            "invalid data",
        ),
        (
            "two sizes for one entry",
            archive(&[
                file("d.md", "1"),
                pax(&[("size", "1024")]),
                file("x.md", "1"),
            ]),
            "invalid data",
        ),
        (
            "a name for all entries",
            archive(&[file("e.md", "1"), {
                let text = "12 path=abc\n";
                entry(
                    EntryType::XGlobalHeader,
                    "g",
                    "",
                    text.len() as u64,
                    text.as_bytes(),
                )
            }]),
            "invalid data",
        ),
        ("no end", file("f.md", "1"), "unexpected end of file"),
        (
            "a cut content",
            [
                file("g.md", "1"),
                entry(EntryType::Regular, "x.md", "", 4_000, b"y"),
            ]
            .concat(),
            "unexpected end of file",
        ),
        (
            "a wrong checksum",
            [file("h.md", "1"), vec![b'x'; 512]].concat(),
            "invalid data",
        ),
    ];
    for (at, (what, archive, error)) in cases.iter().enumerate() {
        let done = home.on_store("import --tar - --json", archive);
        assert_failed(&done, 1, error);
        assert_eq!(json(&done)["complete"], false, "{what}");
        assert_eq!(json(&done)["stored"], 1, "{what}");
        assert_eq!(home.files().len(), at + 1, "{what}");
    }
    let gzip = home.on_store(
        "import --tar -",
        b"\x1f\x8b\x08\0\0\0\0\0 and so on".repeat(40).as_slice(),
    );
    assert_failed(&gzip, 1, "invalid data");
    assert!(err(&gzip).contains("gunzip"));
}

#[test]
fn links_and_pipes_in_a_directory_are_refused_without_waiting() {
    let home = Home::new();
    fs::create_dir(home.path("in")).unwrap();
    fs::write(home.path("outside.md"), "outside").unwrap();
    fs::write(home.path("in/a.md"), "inside").unwrap();
    symlink("../outside.md", home.path("in/link.md")).unwrap();
    symlink("/", home.path("in/root")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = home.path("in/fifo");
    rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    fs::write(home.path("in/pic.png"), b"\x89PNG\r\n\x1a\n\xff").unwrap();
    let done = home.on_store("import --from in", b"");
    assert_failed(&done, 3, "3 refused, 1 images left out");
    assert_eq!(
        out(&done).lines().skip(1).take(5).collect::<Vec<_>>(),
        [
            "/memories/a.md     stored",
            "fifo               refused: it is no regular file",
            "link.md            refused: it is a symbolic link",
            "/memories/pic.png  image, left out",
            "root               refused: it is a symbolic link",
        ]
    );
    let done = home.on_store("import --from in --images --json", b"");
    assert_eq!(
        (&json(&done)["stored"], &json(&done)["exists"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn read_only_paths_are_filled_by_the_operator_only() {
    let home = Home::new();
    fs::create_dir_all(home.path("in/policies")).unwrap();
    fs::write(home.path("in/policies/p.md"), "text\n").unwrap();
    let done = home.on_store("import --from in --json", b"");
    assert_eq!(code(&done), 3);
    let why = json(&done)["entries"][0]["why"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(why.contains("read-only"), "{why}");
    assert_eq!(
        code(&home.on_store("import --from in --as-operator", b"")),
        0
    );
    assert_eq!(home.files().len(), 1);
}

#[test]
fn nothing_is_exported_over_something_or_to_nowhere() {
    let home = Home::filled();
    fs::create_dir(home.path("full")).unwrap();
    fs::write(home.path("full/x"), "mine").unwrap();
    symlink("full", home.path("link")).unwrap();
    fs::write(home.path("x.tar"), "mine").unwrap();
    for (words, exit, what) in [
        ("export --to full", 2, "not empty"),
        ("export --to link/", 2, "symbolic link"),
        ("export --to x.tar", 2, "symbolic link"),
        ("export --tar x.tar", 2, "exists already"),
        ("export --to none/below", 4, "does not exist"),
        ("export --to out --tenant nobody", 4, "no memory"),
        ("import --from none", 4, "open the directory"),
        ("import --from x.tar", 2, "open the directory"),
        ("import --tar none.tar", 4, "open the archive"),
    ] {
        assert_failed(&home.on_store(words, b""), exit, what);
    }
    for words in [
        "export",
        "import",
        "export --to a --tar b",
        "import --from a --tar b",
    ] {
        assert_eq!(code(&home.on_store(words, b"")), 2, "{words}");
    }
    assert_eq!(fs::read(home.path("full/x")).unwrap(), b"mine");
    assert_eq!(fs::read(home.path("x.tar")).unwrap(), b"mine");
    assert!(!home.path("out").exists());
}

/// A record of one file's content is taken away, as if the engine had lost it.
#[test]
fn salvage_exports_the_rest_of_a_damaged_store_with_exit_code_5() {
    let home = Home::new();
    let line = format!("{}\n", "text ".repeat(20));
    home.create("/memories/large.md", &line.repeat(100));
    home.create("/memories/small.md", &line);
    let generation = fs::read_dir(home.path("s"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("db").exists())
        .unwrap();
    let engine = SledBackend::open(&generation).unwrap();
    let chunk = engine
        .scan(&[], None, 1_000)
        .unwrap()
        .into_iter()
        .find(|(_, value)| value.len() > 5_000)
        .unwrap();
    let batch = Batch {
        deletes: vec![chunk.0],
        ..Batch::default()
    };
    let applied = engine.apply(batch).unwrap();
    engine.wait_durable(applied).unwrap();
    engine.close().unwrap();
    drop(engine);
    let plain = home.on_store("export --tar plain.tar", b"");
    assert_failed(&plain, 5, "a file's content");
    assert!(err(&plain).contains("--salvage"), "{plain:?}");
    assert!(!home.path("plain.tar").exists());
    let done = home.on_store("export --salvage --to out --json", b"");
    assert_failed(&done, 5, "1 damaged");
    let report = json(&done);
    assert_eq!(
        (&report["files"], &report["damaged"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(report["entries"][0]["path"], "/memories/large.md");
    assert_eq!(report["entries"][0]["result"], "damaged");
    assert_eq!(fs::read_dir(home.path("out")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(home.path("out/small.md")).unwrap(), line);
}
