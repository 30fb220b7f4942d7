//! The JSON door: input lines to commands, replies to `tool_result` lines.
//!
//! Nothing here touches storage, and nothing here judges a path or a text: a
//! [`Command`] holds what was sent, well-typed and otherwise raw.
//!
//! ```
//! use strongroom::wire::{self, Command, Reply};
//!
//! let request = wire::parse(br#"{"command":"view","path":"/memories"}"#);
//! assert!(matches!(request.command, Ok(Command::View { .. })));
//! assert_eq!(
//!     Reply::error("Error: no").to_tool_result(Some("toolu_1")),
//!     r#"{"type":"tool_result","tool_use_id":"toolu_1","content":"Error: no","is_error":true}"#
//! );
//! ```

mod command;
mod error;
mod id;
mod json;
mod line;
mod reply;
mod request;

#[cfg(test)]
mod tests;

pub use command::{Command, ViewRange};
pub use error::WireError;
pub use id::TOOL_USE_ID_CHARS_MAX;
pub use json::{FIELDS_MAX, NESTING_MAX};
pub use line::{HEAD_BYTES_MAX, Line, LineReader, line_bytes_max};
pub use reply::{Content, Reply};
pub use request::{Request, parse, too_long};

/// The entry of a request's `tools` list that switches the memory tool on, the
/// whole of its configuration.
pub const MEMORY_TOOL: &str = r#"{"type":"memory_20250818","name":"memory"}"#;
