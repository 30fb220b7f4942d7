//! Replies, and the one line of JSON that carries each.

use std::fmt;

use base64ct::{Base64, Encoding};
use serde::Serialize;

use super::error::WireError;

/// What a reply shows.
///
/// `Debug` shows kinds and lengths, never the content.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// A text; an empty one is fine.
    Text(String),
    /// An image.
    Image {
        /// Its media type, such as `image/png`.
        media_type: &'static str,
        /// Its bytes.
        data: Vec<u8>,
    },
}

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What the model sees.
    pub content: Content,
    /// Whether it is told that the command failed.
    pub is_error: bool,
}

impl Reply {
    /// A success.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Reply {
            content: Content::Text(text.into()),
            is_error: false,
        }
    }

    /// A failure. `text` is the whole text, its `Error: ` included where it
    /// has one.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Reply {
            is_error: true,
            ..Reply::text(text)
        }
    }

    /// The text, unless it is an image.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Image { .. } => None,
        }
    }

    /// The reply as a `tool_result` block: one line of JSON without its LF.
    ///
    /// `tool_use_id` is left out when there is none, `is_error` unless it is
    /// true; an image goes as base64 (RFC 4648 section 4, padded).
    #[must_use]
    pub fn to_tool_result(&self, tool_use_id: Option<&str>) -> String {
        let content = match &self.content {
            Content::Text(text) => WireContent::Text(text),
            Content::Image { media_type, data } => WireContent::Blocks([Block {
                kind: "image",
                source: Source {
                    kind: "base64",
                    media_type,
                    data: Base64::encode_string(data),
                },
            }]),
        };
        let result = ToolResult {
            kind: "tool_result",
            tool_use_id,
            content,
            is_error: self.is_error,
        };
        #[expect(
            clippy::expect_used,
            reason = "strings under fixed field names always have a JSON form"
        )]
        serde_json::to_string(&result).expect("a tool_result is valid JSON")
    }
}

impl From<&WireError> for Reply {
    fn from(error: &WireError) -> Self {
        Reply::error(format!("Error: {error}"))
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Content::Image { media_type, data } => {
                write!(f, "Image({media_type}, {} bytes)", data.len())
            }
        }
    }
}

/// The block in the order its fields are documented in.
#[derive(Serialize)]
struct ToolResult<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<&'a str>,
    content: WireContent<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Text(&'a str),
    Blocks([Block; 1]),
}

#[derive(Serialize)]
struct Block {
    #[serde(rename = "type")]
    kind: &'static str,
    source: Source,
}

#[derive(Serialize)]
struct Source {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'static str,
    data: String,
}
