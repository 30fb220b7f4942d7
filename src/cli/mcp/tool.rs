//! The memory tool as the protocol describes it to a model.
//!
//! The schema is flat, with the command as an enum: the Messages API refuses a tool whose
//! schema has `oneOf`, `anyOf` or `allOf` at the top, and clients hand schemas on as they are.
//! So each field says for which commands it is. The store checks what a command really needs
//! and says so in words.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

pub const NAME: &str = "memory";

const DESCRIPTION: &str = "\
Keeps notes in files under /memories that stay when this conversation is gone. Commands and their fields:
- view: path, view_range (optional). Shows a file with line numbers, an image, or a directory two levels deep.
- create: path, file_text. Makes a new text file; missing directories are made.
- str_replace: path, old_str, new_str. Replaces the one place in a file where old_str stands.
- insert: path, insert_line, insert_text. Puts lines after a line; 0 is before the first.
- delete: path. Removes a file, or a directory with all that is below it.
- rename: old_path, new_path. Moves a file or directory; never over one that exists.
An error says what is wrong and what to do. Lines that begin with `Note: ` at the end of an answer are not part of a file.";

const ONLY_READ: &str = "\
Shows notes in files under /memories that were kept from earlier conversations. They can only be read here: view with path, and view_range (optional), shows a file with line numbers, an image, or a directory two levels deep.
Lines that begin with `Note: ` at the end of an answer are not part of a file.";

/// The tool, with what may be done where only reading is allowed.
pub fn memory(read_only: bool) -> Tool {
    let description = if read_only { ONLY_READ } else { DESCRIPTION };
    Tool::new(NAME, description, schema(read_only)).with_annotations(
        ToolAnnotations::with_title("Memory")
            .read_only(read_only)
            .destructive(!read_only)
            .idempotent(read_only)
            .open_world(false),
    )
}

fn schema(read_only: bool) -> JsonObject {
    let mut commands = vec!["view"];
    let mut properties = json!({
        "path": {
            "type": "string",
            "description": "For every command but rename: the file or directory, /memories or an absolute path below it, such as /memories/people/ada.md. Never with . or .. parts, and never percent-encoded."
        },
        "view_range": {
            "type": "array",
            "items": { "type": "integer" },
            "minItems": 2,
            "maxItems": 2,
            "description": "Optional, for view: the first and the last line, counted from 1; -1 as the last means the end. For a directory it selects rows of the listing. A long file is shown in parts, and a note says which range to ask for next."
        }
    });
    if let (false, Some(all)) = (read_only, properties.as_object_mut()) {
        commands.extend(["create", "str_replace", "insert", "delete", "rename"]);
        let more = json!({
            "file_text": {
                "type": "string",
                "description": "For create: the whole content of the new file."
            },
            "old_str": {
                "type": "string",
                "description": "For str_replace: the text to replace, exactly as it stands in the file, line breaks and blanks included, without the line numbers of a view. It must stand there once only: take more lines around it where it stands more often."
            },
            "new_str": {
                "type": "string",
                "description": "For str_replace: the text that takes its place. Left out, old_str is deleted."
            },
            "insert_line": {
                "type": "integer",
                "minimum": 0,
                "description": "For insert: the number of the line after which the text goes; 0 puts it before the first line, the number of the last line at the end."
            },
            "insert_text": {
                "type": "string",
                "description": "For insert: whole lines of text."
            },
            "old_path": {
                "type": "string",
                "description": "For rename: what is moved."
            },
            "new_path": {
                "type": "string",
                "description": "For rename: where it goes. Nothing may be there; missing directories are made."
            }
        });
        all.extend(more.as_object().cloned().unwrap_or_default());
    }
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": ["command"]
    });
    let Value::Object(mut schema) = schema else {
        return JsonObject::new();
    };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let command = json!({
            "type": "string",
            "enum": commands,
            "description": "What to do."
        });
        properties.insert("command".to_owned(), command);
    }
    schema
}

#[cfg(test)]
mod tests {
    use strongroom::wire;

    use super::*;

    /// Every field of every command is described, and described fields are accepted.
    #[test]
    fn the_schema_names_what_the_commands_take() {
        let schema = schema(false);
        let properties = schema["properties"].as_object().unwrap();
        for command in schema["properties"]["command"]["enum"].as_array().unwrap() {
            let mut input = JsonObject::new();
            for (name, about) in properties {
                let value = match about["type"].as_str().unwrap() {
                    "integer" => json!(1),
                    "array" => json!([1, -1]),
                    _ => json!("/memories/a"),
                };
                input.insert(name.clone(), value);
                assert!(about["description"].as_str().unwrap().ends_with('.'));
            }
            input.insert("command".to_owned(), command.clone());
            let request = wire::parse(Value::Object(input).to_string().as_bytes());
            assert_eq!(request.command.unwrap().name(), command.as_str().unwrap());
        }
        assert!(
            ["oneOf", "anyOf", "allOf"]
                .iter()
                .all(|key| !schema.contains_key(*key))
        );
    }

    #[test]
    fn a_reader_is_offered_view_only() {
        let schema = schema(true);
        assert_eq!(schema["properties"]["command"]["enum"], json!(["view"]));
        assert_eq!(schema["properties"].as_object().unwrap().len(), 3);
    }
}
