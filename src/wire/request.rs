//! One input line to one request, whatever the line holds.

use super::command::{Command, Shape};
use super::error::WireError;
use super::id;
use super::json::{self, Json};

/// An input line, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The id to answer to; none for a bare tool input, or where none was
    /// found in a line that is not valid. At most
    /// [`TOOL_USE_ID_CHARS_MAX`](super::TOOL_USE_ID_CHARS_MAX) visible ASCII
    /// characters.
    pub tool_use_id: Option<String>,
    /// The command, or why there is none.
    pub command: Result<Command, WireError>,
}

/// Reads one line: a bare tool input, or a whole `tool_use` block.
///
/// An object counts as a block when its `type` is `tool_use`, or when it has no
/// `command` but a `type`, `name`, `input` or `id`. A byte order mark at the
/// start is ignored (RFC 8259 section 8.1).
///
/// ```
/// use strongroom::wire;
///
/// let line = br#"{"type":"tool_use","id":"toolu_1","name":"memory","input":{"command":"fly"}}"#;
/// let request = wire::parse(line);
/// assert_eq!(request.tool_use_id.as_deref(), Some("toolu_1"));
/// assert_eq!(
///     request.command.unwrap_err().to_string(),
///     "The field `command` holds an unknown command. \
///      The commands are: view, create, str_replace, insert, delete, rename."
/// );
/// ```
#[must_use]
pub fn parse(line: &[u8]) -> Request {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let json = match read(line) {
        Ok(json) => json,
        Err(error) => {
            return Request {
                tool_use_id: id::find(line),
                command: Err(error),
            };
        }
    };
    let Json::Object(mut fields) = json else {
        let found = json.kind();
        return Request {
            tool_use_id: None,
            command: Err(WireError::NotAnObject { found }),
        };
    };
    let is_tool_use = matches!(fields.get("type"), Some(Json::Text(kind)) if kind == "tool_use");
    let is_block = is_tool_use
        || !fields.contains_key("command")
            && ["type", "name", "input", "id"]
                .iter()
                .any(|field| fields.contains_key(*field));
    if !is_block {
        return Request {
            tool_use_id: None,
            command: Command::from_fields(fields),
        };
    }

    let tool_use_id = match fields.remove("id") {
        Some(Json::Text(text)) if id::is_valid(&text) => Ok(text),
        Some(_) => Err(WireError::BadId),
        None => Err(BLOCK.missing("id")),
    };
    let is_memory = match fields.get("name") {
        Some(Json::Text(name)) if name == "memory" => Ok(()),
        Some(Json::Text(_)) => Err(WireError::OtherTool),
        Some(found) => Err(BLOCK.wrong("name", "text", found.kind())),
        None => Err(BLOCK.missing("name")),
    };
    let command = if is_tool_use {
        // An id that cannot be answered to must not start a write.
        tool_use_id.as_ref().map_err(Clone::clone).and(is_memory)
    } else if fields.contains_key("type") {
        Err(WireError::BlockType)
    } else {
        Err(BLOCK.missing("type"))
    };
    Request {
        command: command.and_then(|()| match fields.remove("input") {
            Some(Json::Object(input)) => Command::from_fields(input),
            Some(found) => Err(BLOCK.wrong("input", "an object", found.kind())),
            None => Err(BLOCK.missing("input")),
        }),
        tool_use_id: tool_use_id.ok(),
    }
}

/// The request of a line that was longer than `bytes_max`: an error, with the
/// id if it stands in the line's `head`.
#[must_use]
pub fn too_long(head: &[u8], bytes_max: usize) -> Request {
    Request {
        tool_use_id: id::find(head),
        command: Err(WireError::TooLong { bytes_max }),
    }
}

const BLOCK: Shape = Shape::new("tool_use", "type, id, name, input");

fn read(line: &[u8]) -> Result<Json, WireError> {
    let text = std::str::from_utf8(line).map_err(|error| {
        let before = line.get(..error.valid_up_to()).unwrap_or_default();
        let line_start = before.iter().rposition(|&byte| byte == b'\n');
        let column = before.len() - line_start.map_or(0, |at| at + 1) + 1;
        WireError::NotUtf8 { column }
    })?;
    json::read(text)
}
