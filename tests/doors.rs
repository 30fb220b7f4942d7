//! A held path and a read-only path, tried at every door by which something could change or go.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

use std::ops::ControlFlow;
use std::sync::Arc;

use strongroom::clock::ManualClock;
use strongroom::policy;
use strongroom::transfer::{ImportOptions, ImportSource, SourceEntry, SourceKind};
use strongroom::{Depth, Tenant, Vault};

const DAY: u64 = 24 * 3_600 * 1_000;
/// 2026-01-01.
const START: u64 = 1_767_225_600_000;

/// What is kept lies deep below directories that hold nothing else.
const KEPT: &str = "/memories/a/b/c/kept.md";
const TEXT: &str = "kept\n";

const POLICY: &str = r#"
[write]
on_existing = "overwrite"
[retention]
expire_after_last_access = "7d"
[[retention.rules]]
paths = ["/memories/never/**"]
expire_after_last_access = "never"
"#;

/// Files for an import.
struct Files<'a>(&'a [(&'a str, &'a str)]);

impl ImportSource for Files<'_> {
    fn visit(
        &mut self,
        each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
    ) -> std::io::Result<()> {
        for (name, text) in self.0 {
            let mut content = text.as_bytes();
            let bytes = text.len() as u64;
            let content: &mut dyn std::io::Read = &mut content;
            let kind = SourceKind::File { bytes, content };
            if each(SourceEntry::new(name.as_bytes(), kind)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

struct Home {
    vault: Vault,
    tenant: Tenant,
    clock: Arc<ManualClock>,
}

/// One way at what is kept. Says whether it was refused, where it says anything.
type Door = (&'static str, fn(&Home) -> Option<bool>);

fn refused(reply: Result<strongroom::wire::Reply, strongroom::Error>) -> Option<bool> {
    Some(reply.unwrap().is_error)
}

fn exec(home: &Home, json: &str) -> Option<bool> {
    let answer = home.tenant.execute(json);
    assert!(answer.failure.is_none(), "{answer:?}");
    Some(answer.reply.is_error)
}

fn import(home: &Home, options: ImportOptions, files: &[(&str, &str)]) -> Option<bool> {
    let report = home.tenant.import(&mut Files(files), options, |_, _| ());
    assert!(report.failure.is_none(), "{report:?}");
    assert_eq!(report.stored, 0, "{report:?}");
    Some(report.refused + report.exists > 0)
}

fn sweep(home: &Home, tenant: Option<&str>) -> Option<bool> {
    home.clock.set(START + 60 * DAY);
    let report = home.vault.expire(tenant, false, |_, _| ()).unwrap();
    assert!(report.failed.is_empty());
    None
}

const DOORS: &[Door] = &[
    ("create", |home| refused(home.tenant.create(KEPT, "x\n"))),
    ("str_replace", |home| {
        refused(home.tenant.str_replace(KEPT, "kept", "x"))
    }),
    ("insert", |home| refused(home.tenant.insert(KEPT, 0, "x\n"))),
    ("delete", |home| refused(home.tenant.delete(KEPT))),
    ("delete of the parent", |home| {
        refused(home.tenant.delete("/memories/a/b/c"))
    }),
    ("delete far above", |home| {
        refused(home.tenant.delete("/memories/a"))
    }),
    ("delete, spelled otherwise", |home| {
        refused(home.tenant.delete("/memories//a/./b/"))
    }),
    ("rename", |home| {
        refused(home.tenant.rename(KEPT, "/memories/x.md"))
    }),
    ("rename of the parent", |home| {
        refused(home.tenant.rename("/memories/a/b/c", "/memories/x"))
    }),
    ("rename far above", |home| {
        refused(home.tenant.rename("/memories/a", "/memories/x"))
    }),
    ("rename onto it", |home| {
        refused(home.tenant.rename("/memories/free.md", KEPT))
    }),
    ("rename onto its parent", |home| {
        refused(home.tenant.rename("/memories/free", "/memories/a/b/c"))
    }),
    ("rename to below it", |home| {
        refused(
            home.tenant
                .rename("/memories/free.md", &format!("{KEPT}/x")),
        )
    }),
    ("a file in place of the parent", |home| {
        refused(home.tenant.create("/memories/a/b", "x\n"))
    }),
    ("put_bytes", |home| {
        refused(home.tenant.put_bytes(KEPT, b"x\n"))
    }),
    ("exec: create", |home| {
        exec(
            home,
            r#"{"command":"create","path":"/memories/a/b/c/kept.md","file_text":"x"}"#,
        )
    }),
    ("exec: delete in a tool_use block", |home| {
        exec(
            home,
            r#"{"type":"tool_use","id":"t","name":"memory","input":{"command":"delete","path":"/memories/a"}}"#,
        )
    }),
    ("exec: rename with path for old_path", |home| {
        exec(
            home,
            r#"{"command":"rename","path":"/memories/a/b","new_path":"/memories/z"}"#,
        )
    }),
    ("import", |home| {
        import(home, ImportOptions::new(), &[("a/b/c/kept.md", "x\n")])
    }),
    ("import --overwrite", |home| {
        import(
            home,
            ImportOptions::new().overwrite(true),
            &[("a/b/c/kept.md", "x\n")],
        )
    }),
    ("import of a file in place of the parent", |home| {
        import(
            home,
            ImportOptions::new().overwrite(true).as_operator(true),
            &[("a/b", "x\n")],
        )
    }),
    ("an older handle", |home| {
        let other = home.vault.tenant("a").unwrap().as_actor("somebody", None);
        refused(other.delete("/memories/a"))
    }),
    ("rescan", |home| {
        home.tenant.rescan(false, |_, _| ()).unwrap();
        None
    }),
];

/// By which only the operator comes: they bind a hold, not a read-only path.
const DOORS_OF_THE_OPERATOR: &[Door] = &[
    ("import --as-operator --overwrite", |home| {
        let options = ImportOptions::new().overwrite(true).as_operator(true);
        import(home, options, &[("a/b/c/kept.md", "x\n")])
    }),
    ("expire of the tenant", |home| sweep(home, Some("a"))),
    ("expire of all tenants", |home| sweep(home, None)),
    ("a tighter policy", |home| {
        let text = POLICY.replace("7d", "1d");
        home.vault
            .set_policy(&policy::load(&text, "tighter").unwrap())
            .unwrap();
        sweep(home, None)
    }),
    ("a tighter policy of the tenant's", |home| {
        let text = format!(
            "{POLICY}[[tenants]]\nmatch = \"a\"\n[tenants.retention]\nexpire_after_created = \"1d\"\n"
        );
        home.vault
            .set_policy(&policy::load(&text, "tighter").unwrap())
            .unwrap();
        sweep(home, None)
    }),
];

fn home(policy: &str, held: Option<&str>) -> Home {
    let clock = Arc::new(ManualClock::at(START));
    let vault = Vault::builder()
        .in_memory()
        .clock(clock.clone())
        .policy(policy::load(policy, "test").unwrap())
        .open()
        .unwrap();
    let tenant = vault.tenant("a").unwrap();
    let options = ImportOptions::new().as_operator(true);
    let files = [
        ("a/b/c/kept.md", TEXT),
        ("free.md", "x\n"),
        ("free/f.md", "x\n"),
    ];
    let report = tenant.import(&mut Files(&files), options, |_, _| ());
    assert_eq!(report.stored, 3, "{report:?}");
    if let Some(path) = held {
        assert!(!tenant.add_hold(path, "a case", None).unwrap().is_error);
    }
    Home {
        vault,
        tenant,
        clock,
    }
}

fn is_kept(home: &Home) -> bool {
    let shown = home.tenant.view(KEPT, None).unwrap();
    shown.as_text().unwrap().ends_with("1\tkept")
}

fn try_doors(doors: &[Door], home: impl Fn() -> Home, what: &str) -> usize {
    for (door, pass) in doors {
        let home = home();
        assert!(is_kept(&home));
        let refused = pass(&home);
        assert_ne!(refused, Some(false), "{what}, {door}: not refused");
        assert!(is_kept(&home), "{what}, {door}: gone or changed");
        let report = home.vault.verify(Depth::Full).unwrap();
        assert!(report.problems.is_empty(), "{what}, {door}: {report:?}");
    }
    doors.len()
}

#[test]
fn nothing_gets_at_a_held_path_through_any_door() {
    let mut tried = 0;
    for held in [KEPT, "/memories/a/b/c", "/memories/a"] {
        let what = format!("hold on {held}");
        for doors in [DOORS, DOORS_OF_THE_OPERATOR] {
            tried += try_doors(doors, || home(POLICY, Some(held)), &what);
        }
    }
    assert_eq!(tried, 3 * (DOORS.len() + DOORS_OF_THE_OPERATOR.len()));
}

#[test]
fn nothing_gets_at_a_read_only_path_through_any_door_of_the_agents() {
    for pattern in [
        KEPT,
        "/memories/a/b/**",
        "/memories/a/**",
        "/memories/*/b/c/kept.md",
    ] {
        let policy = format!("[paths]\nread_only = [\"{pattern}\"]\n{POLICY}");
        try_doors(
            DOORS,
            || home(&policy, None),
            &format!("read-only {pattern}"),
        );
    }
}

/// Without anything that keeps it, each door leads to it: the table above tests something.
#[test]
fn every_door_leads_somewhere() {
    let harmless = [
        // What is there already stays, whoever asks.
        "rename onto it",
        "rename onto its parent",
        "rename to below it",
        "a file in place of the parent",
        "import",
        "import of a file in place of the parent",
        // Nothing in it is a secret.
        "rescan",
    ];
    for (door, pass) in DOORS {
        if harmless.contains(door) || door.starts_with("import") {
            continue;
        }
        let home = home(POLICY, None);
        assert_eq!(pass(&home), Some(false), "{door}");
        assert!(!is_kept(&home), "{door}");
    }
    for (door, pass) in DOORS_OF_THE_OPERATOR
        .iter()
        .filter(|(door, _)| !door.starts_with("import"))
    {
        let home = home(POLICY, None);
        pass(&home);
        assert!(!is_kept(&home), "{door}");
    }
}
