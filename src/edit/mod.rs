//! Edits and views of texts: pure functions, from a text to the next text.
//!
//! A line ends at LF and nowhere else; a final LF ends the last line and starts
//! no new one, so an empty text has no line. Every line number here, in a view,
//! an insert or a message, is 1-based and counts by that rule.
//!
//! A range is `(start, end)` as the model sends it in `view_range`, -1 for the
//! end; it is checked here, where the number of lines is known.
//!
//! ```
//! use strongroom::edit;
//!
//! let edited = edit::insert("a\nc", 1, "b\n")?;
//! assert_eq!(edited.text, "a\nb\nc");
//! let edited = edit::str_replace(&edited.text, "c", "C")?;
//! assert_eq!(
//!     edit::snippet(&edited, 16_000),
//!     "The memory file has been edited. Here is the snippet showing the change \
//!      (with line numbers):\n     1\ta\n     2\tb\n     3\tC"
//! );
//! # Ok::<(), edit::EditError>(())
//! ```

mod error;
mod insert;
mod lines;
mod listing;
mod range;
mod replace;
mod size;
mod view;

#[cfg(test)]
mod tests;

use std::fmt;

pub use error::{EditError, LINES_NAMED_MAX, OLD_CHARS_MAX, quote_old};
pub use insert::insert;
pub use lines::{LINES_MAX, check_line_count, line_count, longest_line_chars};
pub use listing::{Row, Window, listing_text, view_directory, window};
pub use range::Unit;
pub use replace::str_replace;
pub use size::size_text;
pub use view::{Numbered, number_lines, snippet, view_file};

/// The text after an edit, and where it changed.
///
/// `Debug` shows lengths and lines, never the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole text after the edit.
    pub text: String,
    /// The first line that the new text stands in; 0 if no line is left.
    pub first_line: u64,
    /// The last such line; where nothing was put in, the line where something
    /// was taken out.
    pub last_line: u64,
}

impl fmt::Debug for Edited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edited")
            .field("text_bytes", &self.text.len())
            .field("first_line", &self.first_line)
            .field("last_line", &self.last_line)
            .finish()
    }
}
