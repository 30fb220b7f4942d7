//! The six commands on every backend.
use strongroom::Vault;

#[test]
fn six_commands_on_disk() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("k");
    strongroom::generate_key_file(&key).unwrap();
    let open = || {
        Vault::builder()
            .path(home.path().join("s"))
            .key_file(&key)
            .create(true)
            .open()
            .unwrap()
    };
    let vault = open();
    let t = vault.tenant("a/b").unwrap();
    for (json, want) in [
        (r#"{"command":"view","path":"/memories"}"#, "0B\t/memories"),
        (
            r#"{"command":"create","path":"/memories/d/e/a.md","file_text":"one\ntwo\n"}"#,
            "File created",
        ),
        (
            r#"{"command":"create","path":"/memories/d/e/b.md","file_text":"one\ntwo\n"}"#,
            "File created",
        ),
        (
            r#"{"command":"str_replace","path":"/memories/d/e/a.md","old_str":"one","new_str":"1"}"#,
            "edited",
        ),
        (
            r#"{"command":"insert","path":"/memories/d/e/a.md","insert_line":1,"insert_text":"x\n"}"#,
            "edited",
        ),
        (
            r#"{"command":"view","path":"/memories/d/e/a.md"}"#,
            "     1\t1\n     2\tx\n     3\ttwo",
        ),
        (
            r#"{"command":"rename","old_path":"/memories/d/e","new_path":"/memories/f/g"}"#,
            "renamed",
        ),
        (
            r#"{"command":"view","path":"/memories"}"#,
            "16B\t/memories\n0B\t/memories/d/\n16B\t/memories/f/\n16B\t/memories/f/g/",
        ),
        (r#"{"command":"delete","path":"/memories/f"}"#, "deleted"),
        (
            r#"{"command":"view","path":"/memories"}"#,
            "0B\t/memories\n0B\t/memories/d/",
        ),
    ] {
        let answer = t.execute(json);
        let text = answer.reply.as_text().unwrap().to_owned();
        assert!(text.contains(want), "{json}: {text} {:?}", answer.failure);
    }
    let big = "0123456789abcde\n".repeat(400_000 / 4);
    let r = t.create("/memories/big.md", &big).unwrap();
    assert!(r.is_error);
    vault.close().unwrap();
    let vault = open();
    let report = vault.verify(strongroom::Depth::Full).unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    let t = vault.tenant("a/b").unwrap();
    assert!(
        t.view("/memories", None)
            .unwrap()
            .as_text()
            .unwrap()
            .contains("/memories/d/")
    );
}
