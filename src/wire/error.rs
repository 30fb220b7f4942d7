//! What can be wrong with an input line, in words a model can act on.

use thiserror::Error;

/// Why an input line is no command.
///
/// The `Display` text is what follows `Error: ` in the reply. It names fields
/// and positions and never quotes what was sent. Columns are 1-based and count
/// bytes from the last LF (from the start of the line, as a rule).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The line is longer than the cap; its rest was skipped.
    #[error(
        "The input line is longer than {bytes_max} bytes. Send a smaller text, or write it in parts."
    )]
    TooLong {
        /// The cap in bytes.
        bytes_max: usize,
    },
    /// The bytes are not UTF-8 (RFC 8259 section 8.1).
    #[error("The input is not valid UTF-8 at column {column}.")]
    NotUtf8 {
        /// Where the first bad byte stands.
        column: usize,
    },
    /// A `\uD800` to `\uDFFF` escape stands without its other half.
    #[error(
        "The input holds invalid Unicode at column {column}: escapes from \\uD800 to \\uDFFF are only valid in pairs."
    )]
    LoneSurrogate {
        /// Where the reader stopped, just after the escape.
        column: usize,
    },
    /// Lists and objects are nested deeper than [`NESTING_MAX`](super::NESTING_MAX).
    #[error("The input is nested too deeply at column {column}.")]
    TooDeep {
        /// Where the reader stopped.
        column: usize,
    },
    /// Not JSON at all, or cut short.
    #[error("The input is not valid JSON: {reason} at column {column}.")]
    NotJson {
        /// The parser's reason, which never quotes the input.
        reason: String,
        /// Where the reader stopped.
        column: usize,
    },
    /// One object names a field twice, so what is meant is not certain.
    #[error("The field {field} is given twice, at column {column}. Give each field once.")]
    DuplicateField {
        /// The field in backticks when it is one of the tool's own, else a
        /// word for it.
        field: &'static str,
        /// Where the reader stopped, just after the second name.
        column: usize,
    },
    /// An object has more fields than [`FIELDS_MAX`](super::FIELDS_MAX).
    #[error("An object of the input has more than {fields_max} fields, at column {column}.")]
    TooManyFields {
        /// The cap.
        fields_max: usize,
        /// Where the reader stopped.
        column: usize,
    },
    /// The line is JSON, but no object.
    #[error(
        "The input must be a JSON object with the field `command`, or a `tool_use` block, not {found}."
    )]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// A content block of another type than `tool_use`.
    #[error("The field `type` of a block must be `tool_use`.")]
    BlockType,
    /// A call of another tool.
    #[error("The field `name` of a `tool_use` block must be `memory`.")]
    OtherTool,
    /// An `id` that cannot be answered to.
    #[error("The field `id` must be a text of 1 to 256 visible ASCII characters.")]
    BadId,
    /// A required field is left out.
    #[error("The field `{field}` is missing. The fields of `{of}` are: {accepted}.")]
    MissingField {
        /// The field.
        field: &'static str,
        /// The command (or `tool_use`).
        of: &'static str,
        /// The fields of that command.
        accepted: &'static str,
    },
    /// A field holds a value of the wrong type.
    #[error(
        "The field `{field}` must be {expected}, not {found}. The fields of `{of}` are: {accepted}."
    )]
    WrongType {
        /// The field.
        field: &'static str,
        /// What belongs there.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
        /// The command (or `tool_use`).
        of: &'static str,
        /// The fields of that command.
        accepted: &'static str,
    },
    /// There is no `command`, or it is no text.
    #[error("The field `command` {fault}. The commands are: {COMMANDS}.")]
    NoCommand {
        /// What is wrong with the field.
        fault: &'static str,
    },
}

const COMMANDS: &str = "view, create, str_replace, insert, delete, rename";
