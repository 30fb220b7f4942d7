//! The six commands, read from the fields of a tool input.

use std::collections::BTreeMap;
use std::fmt;

use super::error::WireError;
use super::json::Json;

/// One command of the memory tool, well-typed and otherwise as it was sent:
/// paths are raw, numbers and texts are not checked against any file.
///
/// `Debug` shows the command and lengths, never a text.
#[derive(Clone, PartialEq, Eq)]
pub enum Command {
    /// Shows a file, or a directory two levels deep.
    View {
        /// The raw path.
        path: String,
        /// The lines (or rows of the listing) that are asked for; all if none.
        view_range: Option<ViewRange>,
    },
    /// Makes a file.
    Create {
        /// The raw path.
        path: String,
        /// The whole content.
        file_text: String,
    },
    /// Replaces the one place where a text stands.
    StrReplace {
        /// The raw path.
        path: String,
        /// The text to look for, literal.
        old_str: String,
        /// The text to put there; empty (also: left out, null) deletes.
        new_str: String,
    },
    /// Puts lines after a line.
    Insert {
        /// The raw path.
        path: String,
        /// The line after which the text goes; 0 is the file's start. Any
        /// whole number: the file's lines are not known here.
        insert_line: i64,
        /// The text (also sent as `new_str`).
        insert_text: String,
    },
    /// Removes a file, or a directory whole.
    Delete {
        /// The raw path.
        path: String,
    },
    /// Moves a file or a directory.
    Rename {
        /// The raw path of the source (also sent as `path`).
        old_path: String,
        /// The raw path of the destination.
        new_path: String,
    },
}

/// A `view_range` as it was sent: two whole numbers, checked against nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewRange {
    /// The first line, 1-based.
    pub start: i64,
    /// The last line; -1 means the end.
    pub end: i64,
}

impl From<ViewRange> for (i64, i64) {
    fn from(range: ViewRange) -> Self {
        (range.start, range.end)
    }
}

impl Command {
    /// The command's name on the wire, such as `str_replace`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Command::View { .. } => VIEW.name,
            Command::Create { .. } => CREATE.name,
            Command::StrReplace { .. } => STR_REPLACE.name,
            Command::Insert { .. } => INSERT.name,
            Command::Delete { .. } => DELETE.name,
            Command::Rename { .. } => RENAME.name,
        }
    }

    /// Reads a tool input. Unknown fields are ignored; a null counts as left
    /// out where the field is optional or sent under its other name.
    pub(super) fn from_fields(mut fields: BTreeMap<String, Json>) -> Result<Self, WireError> {
        let name = match fields.remove("command") {
            Some(Json::Text(name)) => name,
            Some(Json::Null) => return Err(WireError::NoCommand { fault: "is null" }),
            Some(_) => {
                return Err(WireError::NoCommand {
                    fault: "must be text",
                });
            }
            None => {
                return Err(WireError::NoCommand {
                    fault: "is missing",
                });
            }
        };
        let fields = |of| Fields { of, fields };
        match name.as_str() {
            "view" => fields(VIEW).view(),
            "create" => fields(CREATE).create(),
            "str_replace" => fields(STR_REPLACE).str_replace(),
            "insert" => fields(INSERT).insert(),
            "delete" => fields(DELETE).delete(),
            "rename" => fields(RENAME).rename(),
            _ => Err(WireError::NoCommand {
                fault: "holds an unknown command",
            }),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, text) = match self {
            Command::View { path, .. } | Command::Delete { path } => (path, 0),
            Command::Create { path, file_text } => (path, file_text.len()),
            Command::StrReplace { path, new_str, .. } => (path, new_str.len()),
            Command::Insert {
                path, insert_text, ..
            } => (path, insert_text.len()),
            Command::Rename { old_path, .. } => (old_path, 0),
        };
        f.debug_struct(self.name())
            .field("path_bytes", &path.len())
            .field("text_bytes", &text)
            .finish_non_exhaustive()
    }
}

/// A command's name and its fields, as messages list them.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    name: &'static str,
    accepted: &'static str,
}

const VIEW: Shape = Shape::new("view", "path, view_range (optional)");
const CREATE: Shape = Shape::new("create", "path, file_text");
const STR_REPLACE: Shape = Shape::new("str_replace", "path, old_str, new_str (optional)");
const INSERT: Shape = Shape::new("insert", "path, insert_line, insert_text");
const DELETE: Shape = Shape::new("delete", "path");
const RENAME: Shape = Shape::new("rename", "old_path, new_path");

impl Shape {
    pub(super) const fn new(name: &'static str, accepted: &'static str) -> Self {
        Shape { name, accepted }
    }

    pub(super) fn missing(self, field: &'static str) -> WireError {
        let Shape { name: of, accepted } = self;
        WireError::MissingField {
            field,
            of,
            accepted,
        }
    }

    pub(super) fn wrong(
        self,
        field: &'static str,
        expected: &'static str,
        found: &'static str,
    ) -> WireError {
        let Shape { name: of, accepted } = self;
        WireError::WrongType {
            field,
            expected,
            found,
            of,
            accepted,
        }
    }
}

struct Fields {
    of: Shape,
    fields: BTreeMap<String, Json>,
}

impl Fields {
    fn view(mut self) -> Result<Command, WireError> {
        Ok(Command::View {
            path: self.text("path")?,
            view_range: self.range("view_range")?,
        })
    }

    fn create(mut self) -> Result<Command, WireError> {
        Ok(Command::Create {
            path: self.text("path")?,
            file_text: self.text("file_text")?,
        })
    }

    fn str_replace(mut self) -> Result<Command, WireError> {
        Ok(Command::StrReplace {
            path: self.text("path")?,
            old_str: self.text("old_str")?,
            new_str: self.optional_text("new_str")?.unwrap_or_default(),
        })
    }

    fn insert(mut self) -> Result<Command, WireError> {
        Ok(Command::Insert {
            path: self.text("path")?,
            insert_line: self.whole("insert_line")?,
            insert_text: self.text_or("insert_text", "new_str")?,
        })
    }

    fn delete(mut self) -> Result<Command, WireError> {
        Ok(Command::Delete {
            path: self.text("path")?,
        })
    }

    fn rename(mut self) -> Result<Command, WireError> {
        Ok(Command::Rename {
            old_path: self.text_or("old_path", "path")?,
            new_path: self.text("new_path")?,
        })
    }

    fn text(&mut self, field: &'static str) -> Result<String, WireError> {
        match self.fields.remove(field) {
            Some(Json::Text(text)) => Ok(text),
            Some(found) => Err(self.of.wrong(field, "text", found.kind())),
            None => Err(self.of.missing(field)),
        }
    }

    fn optional_text(&mut self, field: &'static str) -> Result<Option<String>, WireError> {
        match self.fields.remove(field) {
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(Json::Null) | None => Ok(None),
            Some(found) => Err(self.of.wrong(field, "text", found.kind())),
        }
    }

    /// The field, or the other name that models send for it.
    fn text_or(&mut self, field: &'static str, other: &'static str) -> Result<String, WireError> {
        let own_left_out = matches!(self.fields.get(field), None | Some(Json::Null));
        if own_left_out && let Some(text) = self.optional_text(other)? {
            return Ok(text);
        }
        self.text(field)
    }

    fn whole(&mut self, field: &'static str) -> Result<i64, WireError> {
        match self.fields.remove(field) {
            Some(Json::Whole(number)) => Ok(number),
            Some(found) => Err(self.of.wrong(field, "a whole number", found.kind())),
            None => Err(self.of.missing(field)),
        }
    }

    fn range(&mut self, field: &'static str) -> Result<Option<ViewRange>, WireError> {
        let expected = "a list of two whole numbers, [start, end], where end -1 means the end";
        let found = match self.fields.remove(field) {
            Some(Json::Null) | None => return Ok(None),
            Some(Json::List(items)) => match *items.as_slice() {
                [Json::Whole(start), Json::Whole(end)] => {
                    return Ok(Some(ViewRange { start, end }));
                }
                [_, _] => "a list of other values",
                _ => "a list of another length",
            },
            Some(found) => found.kind(),
        };
        Err(self.of.wrong(field, expected, found))
    }
}
