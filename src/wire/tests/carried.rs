//! How lines come in and replies go out, and the laws of both.

use std::io::{self, BufReader, Read};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::view;

#[test]
fn replies_are_one_line_in_the_documented_order() {
    assert_eq!(
        Reply::text("a\nb\u{2028}\t\"").to_tool_result(Some("toolu_1")),
        "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1\",\"content\":\"a\\nb\u{2028}\\t\\\"\"}"
    );
    let error = parse(b"{}").command.unwrap_err();
    assert_eq!(
        Reply::from(&error).to_tool_result(None),
        r#"{"type":"tool_result","content":"Error: The field `command` is missing. The commands are: view, create, str_replace, insert, delete, rename.","is_error":true}"#
    );
    let image = Reply {
        content: Content::Image {
            media_type: "image/png",
            data: vec![0xFB, 0xFF, 0, 1],
        },
        is_error: false,
    };
    assert_eq!(
        image.to_tool_result(Some("t")),
        r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"+/8AAQ=="}}]}"#
    );
    assert_eq!(
        format!("{:?}", Reply::text("hunter2").content),
        "Text(7 bytes)"
    );
}

fn lines(input: &[u8], bytes_max: usize, buffer_bytes: usize) -> Vec<Line> {
    let reader = BufReader::with_capacity(buffer_bytes, input);
    let lines: io::Result<Vec<Line>> = LineReader::new(reader, bytes_max).collect();
    lines.unwrap()
}

#[test]
fn long_lines_are_skipped_whole_and_the_next_is_read() {
    let text = |line: &str| Line::Text(line.into());
    let long = |head: &str, bytes_max| Line::TooLong {
        bytes_max,
        head: head.into(),
    };
    for buffer in [1, 2, 3, 7, 64] {
        let found = lines(b"\n \t\r\nabcd\nabcde\r\n\nxy\n", 4, buffer);
        assert_eq!(found, [text("abcd"), long("abcd", 4), text("xy")]);
        assert_eq!(lines(b"abcdef", 4, buffer), [long("abcd", 4)]);
        assert_eq!(lines(b"abcd", 4, buffer), [text("abcd")]);
        assert_eq!(lines(b"", 4, buffer), []);
        assert_eq!(lines(b"\n\n", 4, buffer), []);
    }
    let head = lines(&[b'x'; 100_000], 50_000, 8_192);
    assert_eq!(head, [long(&"x".repeat(HEAD_BYTES_MAX), 50_000)]);
    assert_eq!(line_bytes_max(256 * 1024), 8 * 256 * 1024 + 64 * 1024);
}

#[test]
fn a_line_without_end_is_not_held() {
    let endless = io::repeat(b'x').take(64 * 1024 * 1024);
    let mut reader = LineReader::new(BufReader::new(endless), 1_000);
    let line = reader.next_line().unwrap().unwrap();
    let request = line.request();
    assert_eq!(
        request.command,
        Err(WireError::TooLong { bytes_max: 1_000 })
    );
    assert!(matches!(line, Line::TooLong { head, .. } if head.capacity() <= HEAD_BYTES_MAX));
    assert_eq!(reader.next_line().unwrap(), None);
}

#[test]
fn the_id_of_a_too_long_line_is_answered_to() {
    let text = "x".repeat(10_000);
    let line = format!(
        r#"{{"type":"tool_use","id":"toolu_9","name":"memory","input":{{"command":"create","path":"p","file_text":"{text}"}}}}"#
    );
    let request = lines(line.as_bytes(), 5_000, 512)[0].request();
    assert_eq!(request.tool_use_id.as_deref(), Some("toolu_9"));
    assert_eq!(
        request.command.unwrap_err().to_string(),
        "The input line is longer than 5000 bytes. Send a smaller text, or write it in parts."
    );
}

/// Pieces that make input near to valid, which random bytes never are.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\\ud800",
            "\\u",
            " ",
            "null",
            "true",
            "1.0",
            "-1",
            "1e999",
            "\"command\":",
            "\"view\"",
            "\"insert\"",
            "\"path\":\"p\"",
            "\"type\":",
            "\"tool_use\"",
            "\"id\":",
            "\"toolu_1\"",
            "\"name\":\"memory\"",
            "\"input\":{",
            "\"view_range\":[1,2]",
            "\u{feff}",
            "\n",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 1..3),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_get_a_request(line in pieces()) {
        for request in [parse(&line), too_long(&line, 9)] {
            if let Some(id) = &request.tool_use_id {
                prop_assert!(!id.is_empty() && id.len() <= TOOL_USE_ID_CHARS_MAX);
                prop_assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
            }
            if let Err(error) = request.command {
                prop_assert!(error.to_string().ends_with('.'));
            }
        }
    }

    #[test]
    fn errors_quote_nothing(cut in 0_usize..120, flip in 0_usize..120) {
        let mut line = br#"{"type":"tool_use","id":"t","name":"memory","input":{"command":"create","path":"/s3cr3t","file_text":"s3cr3t","s3cr3t":["s3cr3t"]}}"#.to_vec();
        line[flip] ^= 1;
        line.truncate(line.len() - cut);
        if let Err(error) = parse(&line).command {
            let shown = format!("{error} {error:?}");
            prop_assert!(!shown.contains("s3cr3t"), "{}", shown);
        }
    }

    #[test]
    fn commands_round_trip(path: String, text: String, line: i64, end: i64) {
        let input = json!({
            "command": "insert", "path": path, "insert_line": line, "insert_text": text
        });
        prop_assert_eq!(
            parse(input.to_string().as_bytes()).command,
            Ok(Command::Insert { path: path.clone(), insert_line: line, insert_text: text })
        );
        let input = json!({ "command": "view", "path": path, "view_range": [line, end] });
        prop_assert_eq!(
            parse(input.to_string().as_bytes()).command,
            Ok(view(&path, Some((line, end))))
        );
    }

    #[test]
    fn replies_round_trip(text: String, is_error: bool, id in "[!-~]{1,40}") {
        let reply = Reply { content: Content::Text(text.clone()), is_error };
        let line = reply.to_tool_result(Some(&id));
        prop_assert!(!line.contains('\n'));
        let value: Value = serde_json::from_str(&line).unwrap();
        let mut expected = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
        if is_error {
            expected["is_error"] = json!(true);
        }
        prop_assert_eq!(value, expected);
    }

    #[test]
    fn lines_are_those_of_a_split(
        input in prop::collection::vec(prop::sample::select(b"ab \n".to_vec()), 0..60),
        bytes_max in 1_usize..8,
        buffer in 1_usize..9,
    ) {
        let expected: Vec<Line> = input
            .split(|&byte| byte == b'\n')
            .filter_map(|line| match line.get(..bytes_max) {
                Some(head) if line.len() > bytes_max => {
                    Some(Line::TooLong { bytes_max, head: head.to_vec() })
                }
                _ if line.trim_ascii().is_empty() => None,
                _ => Some(Line::Text(line.to_vec())),
            })
            .collect();
        prop_assert_eq!(lines(&input, bytes_max, buffer), expected);
    }
}
