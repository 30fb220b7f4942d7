//! What lines are accepted, and what the refused ones are told.

use super::*;

mod carried;

fn command(line: &str) -> Result<Command, String> {
    parse(line.as_bytes())
        .command
        .map_err(|error| error.to_string())
}

fn view(path: &str, view_range: Option<(i64, i64)>) -> Command {
    Command::View {
        path: path.into(),
        view_range: view_range.map(|(start, end)| ViewRange { start, end }),
    }
}

#[test]
fn all_commands_are_read() {
    let path = || "/memories/a".to_owned();
    let cases = [
        (
            r#"{"command":"view","path":"/memories/a"}"#,
            view("/memories/a", None),
        ),
        (
            r#"{"command":"view","path":"/memories/a","view_range":[2,-1]}"#,
            view("/memories/a", Some((2, -1))),
        ),
        (
            r#"{"command":"create","path":"/memories/a","file_text":"x\n\u2028\ud83d\ude00"}"#,
            Command::Create {
                path: path(),
                file_text: "x\n\u{2028}😀".into(),
            },
        ),
        (
            r#"{"command":"str_replace","path":"/memories/a","old_str":"x","new_str":"y"}"#,
            Command::StrReplace {
                path: path(),
                old_str: "x".into(),
                new_str: "y".into(),
            },
        ),
        (
            r#"{"command":"insert","path":"/memories/a","insert_line":-3,"insert_text":""}"#,
            Command::Insert {
                path: path(),
                insert_line: -3,
                insert_text: String::new(),
            },
        ),
        (
            r#"{"command":"delete","path":"/memories/a"}"#,
            Command::Delete { path: path() },
        ),
        (
            r#"{"command":"rename","old_path":"/memories/a","new_path":"b"}"#,
            Command::Rename {
                old_path: path(),
                new_path: "b".into(),
            },
        ),
    ];
    for (line, expected) in cases {
        let name = format!(r#""{}""#, expected.name());
        assert!(line.contains(&name), "{line}");
        assert!(!format!("{expected:?}").contains("memories"));
        assert_eq!(command(line), Ok(expected), "{line}");
    }
}

#[test]
fn optional_fields_and_other_names_are_accepted() {
    let path = || "p".to_owned();
    let deletes = || Command::StrReplace {
        path: path(),
        old_str: "x".into(),
        new_str: String::new(),
    };
    let inserts = |line, text: &str| Command::Insert {
        path: path(),
        insert_line: line,
        insert_text: text.into(),
    };
    let renames = |old: &str| Command::Rename {
        old_path: old.into(),
        new_path: "n".into(),
    };
    let cases = [
        (
            r#"{"command":"str_replace","path":"p","old_str":"x"}"#,
            deletes(),
        ),
        (
            r#"{"command":"str_replace","path":"p","old_str":"x","new_str":null}"#,
            deletes(),
        ),
        (
            r#"{"command":"insert","path":"p","insert_line":1,"new_str":"t"}"#,
            inserts(1, "t"),
        ),
        (
            r#"{"command":"insert","path":"p","insert_line":1,"insert_text":null,"new_str":"t"}"#,
            inserts(1, "t"),
        ),
        (
            r#"{"command":"insert","path":"p","insert_line":1,"new_str":"u","insert_text":"t"}"#,
            inserts(1, "t"),
        ),
        (
            r#"{"command":"insert","path":"p","insert_line":1.0,"insert_text":"t"}"#,
            inserts(1, "t"),
        ),
        (
            r#"{"command":"insert","path":"p","insert_line":-0,"insert_text":"t"}"#,
            inserts(0, "t"),
        ),
        (
            r#"{"command":"insert","path":"p","insert_line":1e2,"insert_text":"t"}"#,
            inserts(100, "t"),
        ),
        (
            r#"{"command":"rename","path":"a","new_path":"n"}"#,
            renames("a"),
        ),
        (
            r#"{"command":"rename","path":"a","old_path":"b","new_path":"n"}"#,
            renames("b"),
        ),
        (
            r#"{"command":"view","path":"p","view_range":null}"#,
            view("p", None),
        ),
        (
            r#"{"command":"view","path":"p","view_range":[1.0,2.0]}"#,
            view("p", Some((1, 2))),
        ),
        (
            r#" {"reason":{"a":[1,[2]],"b":null},"command":"view","path":"p","insert_line":"x"} "#,
            view("p", None),
        ),
        (
            r#"{"type":"text","command":"view","path":"p"}"#,
            view("p", None),
        ),
        (
            "\u{feff}{\"command\":\"view\",\"path\":\"p\"}\r",
            view("p", None),
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(command(line), Ok(expected), "{line}");
    }
}

#[test]
fn refusals_name_the_field_and_the_accepted_ones() {
    const COMMANDS: &str = "The commands are: view, create, str_replace, insert, delete, rename.";
    const VIEW: &str = "The fields of `view` are: path, view_range (optional).";
    const INSERT: &str = "The fields of `insert` are: path, insert_line, insert_text.";
    const RANGE: &str = "The field `view_range` must be a list of two whole numbers, [start, end], where end -1 means the end, not";
    let cases = [
        ("{}", format!("The field `command` is missing. {COMMANDS}")),
        (r#"{"command":null}"#, format!("The field `command` is null. {COMMANDS}")),
        (r#"{"command":7}"#, format!("The field `command` must be text. {COMMANDS}")),
        (r#"{"command":"View"}"#, format!("The field `command` holds an unknown command. {COMMANDS}")),
        (r#"{"command":"view"}"#, format!("The field `path` is missing. {VIEW}")),
        (r#"{"command":"view","path":null}"#, format!("The field `path` must be text, not null. {VIEW}")),
        (r#"{"command":"view","path":7}"#, format!("The field `path` must be text, not a number. {VIEW}")),
        (r#"{"command":"view","path":{}}"#, format!("The field `path` must be text, not an object. {VIEW}")),
        (r#"{"command":"view","path":"p","view_range":[2]}"#, format!("{RANGE} a list of another length. {VIEW}")),
        (r#"{"command":"view","path":"p","view_range":[1,2,3]}"#, format!("{RANGE} a list of another length. {VIEW}")),
        (r#"{"command":"view","path":"p","view_range":[]}"#, format!("{RANGE} a list of another length. {VIEW}")),
        (r#"{"command":"view","path":"p","view_range":["1","2"]}"#, format!("{RANGE} a list of other values. {VIEW}")),
        (r#"{"command":"view","path":"p","view_range":[1.5,2]}"#, format!("{RANGE} a list of other values. {VIEW}")),
        (r#"{"command":"view","path":"p","view_range":[true,2]}"#, format!("{RANGE} a list of other values. {VIEW}")),
        (r#"{"command":"view","path":"p","view_range":[1,1e300]}"#, format!("{RANGE} a list of other values. {VIEW}")),
        (r#"{"command":"view","path":"p","view_range":"1-2"}"#, format!("{RANGE} text. {VIEW}")),
        (r#"{"command":"create","path":"p"}"#, "The field `file_text` is missing. The fields of `create` are: path, file_text.".into()),
        (r#"{"command":"create","path":"p","file_text":["x"]}"#, "The field `file_text` must be text, not a list. The fields of `create` are: path, file_text.".into()),
        (r#"{"command":"str_replace","path":"p","new_str":"X"}"#, "The field `old_str` is missing. The fields of `str_replace` are: path, old_str, new_str (optional).".into()),
        (r#"{"command":"str_replace","path":"p","old_str":"a","new_str":false}"#, "The field `new_str` must be text, not a boolean. The fields of `str_replace` are: path, old_str, new_str (optional).".into()),
        (r#"{"command":"insert","path":"p","insert_text":"x"}"#, format!("The field `insert_line` is missing. {INSERT}")),
        (r#"{"command":"insert","path":"p","insert_line":1.5,"insert_text":"x"}"#, format!("The field `insert_line` must be a whole number, not a fraction. {INSERT}")),
        (r#"{"command":"insert","path":"p","insert_line":"1","insert_text":"x"}"#, format!("The field `insert_line` must be a whole number, not text. {INSERT}")),
        (r#"{"command":"insert","path":"p","insert_line":18446744073709551616,"insert_text":"x"}"#, format!("The field `insert_line` must be a whole number, not a number out of range. {INSERT}")),
        (r#"{"command":"insert","path":"p","insert_line":9223372036854775808,"insert_text":"x"}"#, format!("The field `insert_line` must be a whole number, not a number out of range. {INSERT}")),
        (r#"{"command":"insert","path":"p","insert_line":1}"#, format!("The field `insert_text` is missing. {INSERT}")),
        (r#"{"command":"insert","path":"p","insert_line":1,"insert_text":5,"new_str":"x"}"#, format!("The field `insert_text` must be text, not a number. {INSERT}")),
        (r#"{"command":"rename","new_path":"n"}"#, "The field `old_path` is missing. The fields of `rename` are: old_path, new_path.".into()),
        (r#"{"command":"delete","old_path":"n"}"#, "The field `path` is missing. The fields of `delete` are: path.".into()),
        ("[]", "The input must be a JSON object with the field `command`, or a `tool_use` block, not a list.".into()),
        (r#""secret""#, "The input must be a JSON object with the field `command`, or a `tool_use` block, not text.".into()),
        (r#"{"command":"view","path":"a","path":"b"}"#, "The field `path` is given twice, at column 35. Give each field once.".into()),
        (r#"{"x":{"s3cret":1,"s3cret":2}}"#, "The field (not one of this tool's) is given twice, at column 25. Give each field once.".into()),
        (r#"{"command":"view" "path":"a"}"#, "The input is not valid JSON: expected `,` or `}` at column 19.".into()),
        (r#"{"command":"view","path":"#, "The input is not valid JSON: EOF while parsing a value at column 25.".into()),
        (r#"{"command":"view","path":"a"} {}"#, "The input is not valid JSON: trailing characters at column 31.".into()),
        (r#"{"n":1e400}"#, "The input is not valid JSON: number out of range at column 10.".into()),
        ("{\"a\":\"\u{1}\"}", "The input is not valid JSON: control character (\\u0000-\\u001F) found while parsing a string at column 7.".into()),
    ];
    for (line, expected) in cases {
        assert_eq!(command(line), Err(expected), "{line}");
    }
}

#[test]
fn lone_surrogates_are_refused_with_their_column_and_the_id_is_kept() {
    for escape in [
        r"\ud800",
        r"\ud800b",
        r"\udcff",
        r"\ud800\ud800",
        r"\ud800\n",
        r"\uD83D\u0041",
    ] {
        for field in ["path", "other"] {
            let line = format!(
                r#"{{"type":"tool_use","id":"toolu_1","name":"memory","input":{{"command":"view","{field}":"a{escape}"}}}}"#
            );
            let request = parse(line.as_bytes());
            assert_eq!(request.tool_use_id.as_deref(), Some("toolu_1"), "{line}");
            let at = line.find('\\').unwrap();
            match request.command {
                Err(WireError::LoneSurrogate { column }) => {
                    assert!((at..=at + 13).contains(&column), "{line}: {column}");
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_their_column_and_the_id_is_kept() {
    let line = b"{\"id\":\"toolu_1\",\"x\":\"\xff\"}";
    let request = parse(line);
    assert_eq!(request.tool_use_id.as_deref(), Some("toolu_1"));
    assert_eq!(request.command, Err(WireError::NotUtf8 { column: 22 }));
    assert_eq!(
        parse(b"{\n \xc0").command,
        Err(WireError::NotUtf8 { column: 2 })
    );
}

#[test]
fn depth_and_width_are_bounded() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        command(&format!(
            r#"{{"command":"view","path":"p","x":{open}{close}}}"#
        ))
    };
    assert!(nested(NESTING_MAX - 1).is_ok());
    assert!(
        nested(NESTING_MAX)
            .unwrap_err()
            .starts_with("The input is nested too deeply at column")
    );
    assert!(nested(1_000_000).is_err());

    let wide = |fields: usize| {
        let fields: Vec<String> = (0..fields).map(|n| format!(r#""f{n}":0"#)).collect();
        parse(format!("{{{}}}", fields.join(",")).as_bytes()).command
    };
    assert!(matches!(wide(FIELDS_MAX), Err(WireError::NoCommand { .. })));
    assert!(matches!(
        wide(FIELDS_MAX + 1),
        Err(WireError::TooManyFields {
            fields_max: FIELDS_MAX,
            ..
        })
    ));
}

#[test]
fn blocks_are_unwrapped_and_their_id_kept() {
    let input = r#"{"command":"view","path":"p"}"#;
    let cases = [
        (
            format!(r#"{{"type":"tool_use","id":"t","name":"memory","input":{input}}}"#),
            Some("t"),
            None,
        ),
        (
            format!(
                r#"{{"id":"t","input":{input},"name":"memory","type":"tool_use","caller":{{"type":"direct"}}}}"#
            ),
            Some("t"),
            None,
        ),
        (
            format!(r#"{{"type":"tool_use","id":"t","name":"bash","input":{input}}}"#),
            Some("t"),
            Some("The field `name` of a `tool_use` block must be `memory`."),
        ),
        (
            format!(r#"{{"type":"server_tool_use","id":"t","name":"memory","input":{input}}}"#),
            Some("t"),
            Some("The field `type` of a block must be `tool_use`."),
        ),
        (
            format!(r#"{{"id":"t","name":"memory","input":{input}}}"#),
            Some("t"),
            Some(
                "The field `type` is missing. The fields of `tool_use` are: type, id, name, input.",
            ),
        ),
        (
            format!(r#"{{"type":"tool_use","name":"memory","input":{input}}}"#),
            None,
            Some("The field `id` is missing. The fields of `tool_use` are: type, id, name, input."),
        ),
        (
            format!(r#"{{"type":"tool_use","id":"a b","name":"memory","input":{input}}}"#),
            None,
            Some("The field `id` must be a text of 1 to 256 visible ASCII characters."),
        ),
        (
            format!(r#"{{"type":"tool_use","id":7,"name":"memory","input":{input}}}"#),
            None,
            Some("The field `id` must be a text of 1 to 256 visible ASCII characters."),
        ),
        (
            r#"{"type":"tool_use","id":"t","name":"memory"}"#.into(),
            Some("t"),
            Some(
                "The field `input` is missing. The fields of `tool_use` are: type, id, name, input.",
            ),
        ),
        (
            r#"{"type":"tool_use","id":"t","name":"memory","input":"{}"}"#.into(),
            Some("t"),
            Some(
                "The field `input` must be an object, not text. The fields of `tool_use` are: type, id, name, input.",
            ),
        ),
        (
            r#"{"type":"tool_use","id":"t","name":"memory","input":{}}"#.into(),
            Some("t"),
            Some(
                "The field `command` is missing. The commands are: view, create, str_replace, insert, delete, rename.",
            ),
        ),
        (
            format!(
                r#"{{"type":"tool_use","command":"view","id":"t","name":"memory","input":{input}}}"#
            ),
            Some("t"),
            None,
        ),
        (
            r#"{"command":"view","path":"p","id":"t","input":{}}"#.into(),
            None,
            None,
        ),
        (
            r#"{"type":"text","text":"hi"}"#.into(),
            None,
            Some("The field `type` of a block must be `tool_use`."),
        ),
    ];
    for (line, id, error) in cases {
        let request = parse(line.as_bytes());
        assert_eq!(request.tool_use_id.as_deref(), id, "{line}");
        match (request.command, error) {
            (Ok(command), None) => assert_eq!(command, view("p", None), "{line}"),
            (Err(found), Some(error)) => assert_eq!(found.to_string(), error, "{line}"),
            (other, _) => panic!("{line}: {other:?}"),
        }
    }
    let longest = "x".repeat(TOOL_USE_ID_CHARS_MAX);
    for (id, is_kept) in [
        (longest.clone(), true),
        (longest + "x", false),
        (String::new(), false),
    ] {
        let line = format!(r#"{{"type":"tool_use","id":"{id}","name":"memory","input":{input}}}"#);
        assert_eq!(parse(line.as_bytes()).command.is_ok(), is_kept);
    }
}

#[test]
fn ids_are_found_in_damaged_lines_or_not_at_all() {
    let cases: [(&str, Option<&str>); 13] = [
        (r#"{"id":"t","#, Some("t")),
        (r#"{"type":"tool_use" , "id" : "t" , "name"#, Some("t")),
        (r#"{"input":{"id":"inner","a":["id"]},"id":"t""#, Some("t")),
        (
            r#"{"input":{"command":"create","file_text":"\"id\":\"fake\"","x":"\\"},"id":"t" oops"#,
            Some("t"),
        ),
        (r#"{"id":"t","input":{"file_text":"cut here"#, Some("t")),
        (r#"{"id":"t","id":"t",}"#, Some("t")),
        (r#"{"id":"t","id":"u",}"#, None),
        (r#"{"input":{"id":"inner"#, None),
        (r#"{"command":"view","id":"t","#, None),
        (r#"{"x":"id","y":"t","#, None),
        (r#"{"id":"a\u0062","#, None),
        (r#"{"id":"cut"#, None),
        (r#"{"id":7,"#, None),
    ];
    for (line, id) in cases {
        let request = parse(line.as_bytes());
        assert!(request.command.is_err(), "{line}");
        assert_eq!(request.tool_use_id.as_deref(), id, "{line}");
        assert_eq!(
            too_long(line.as_bytes(), 9).tool_use_id.as_deref(),
            id,
            "{line}"
        );
    }
}
