//! Reads input lines under a cap, so that no line can exhaust memory.

use std::fmt;
use std::io::{self, BufRead};

use super::request::{self, Request};

/// How much of a too long line is kept, to look for its id.
pub const HEAD_BYTES_MAX: usize = 4 * 1024;

/// The cap for lines where files hold at most `max_file_bytes`: eight times
/// that (a text in JSON can be six times as long as its bytes) plus 64 KiB.
#[must_use]
pub fn line_bytes_max(max_file_bytes: u64) -> usize {
    let bytes = max_file_bytes.saturating_mul(8).saturating_add(64 * 1024);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// One input line that is not blank, without its LF.
///
/// `Debug` shows lengths only.
#[derive(Clone, PartialEq, Eq)]
pub enum Line {
    /// A line within the cap.
    Text(Vec<u8>),
    /// A longer line; its rest was skipped without being held.
    TooLong {
        /// The cap in bytes.
        bytes_max: usize,
        /// The line's first [`HEAD_BYTES_MAX`] bytes (or as many as the cap).
        head: Vec<u8>,
    },
}

impl Line {
    /// Reads the line as a request; a too long one gives its error.
    #[must_use]
    pub fn request(&self) -> Request {
        match self {
            Line::Text(line) => request::parse(line),
            Line::TooLong { bytes_max, head } => request::too_long(head, *bytes_max),
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Text(line) => write!(f, "Text({} bytes)", line.len()),
            Line::TooLong { bytes_max, .. } => write!(f, "TooLong(over {bytes_max} bytes)"),
        }
    }
}

/// Splits input at LF; the last line may lack it. Lines of nothing but ASCII
/// white space are skipped.
///
/// As an iterator it yields each line, or the error of the reader below
/// (`Interrupted` is retried).
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    bytes_max: usize,
}

impl<R: BufRead> LineReader<R> {
    /// Reads from `reader`, holding at most `bytes_max` bytes of a line
    /// (see [`line_bytes_max`]).
    #[must_use]
    pub fn new(reader: R, bytes_max: usize) -> Self {
        LineReader { reader, bytes_max }
    }

    /// The cap in bytes, LF not counted.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The next line that is not blank; none at the end of the input.
    ///
    /// # Errors
    /// What the reader below reports.
    pub fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            match self.read_line()? {
                None => return Ok(None),
                Some(Line::Text(line)) if line.trim_ascii().is_empty() => {}
                Some(line) => return Ok(Some(line)),
            }
        }
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut is_too_long = false;
        let mut is_at_end = true;
        loop {
            let buffer = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                break;
            }
            is_at_end = false;
            let newline = buffer.iter().position(|&byte| byte == b'\n');
            let part_bytes = newline.unwrap_or(buffer.len());
            let part = buffer.get(..part_bytes).unwrap_or_default();
            if !is_too_long {
                let room = self.bytes_max.saturating_sub(line.len());
                is_too_long = part.len() > room;
                line.extend_from_slice(part.get(..room).unwrap_or(part));
                if is_too_long {
                    line.truncate(HEAD_BYTES_MAX);
                    line.shrink_to_fit();
                }
            }
            self.reader
                .consume(part_bytes.saturating_add(usize::from(newline.is_some())));
            if newline.is_some() {
                break;
            }
        }
        if is_at_end {
            return Ok(None);
        }
        Ok(Some(if is_too_long {
            Line::TooLong {
                bytes_max: self.bytes_max,
                head: line,
            }
        } else {
            Line::Text(line)
        }))
    }
}

impl<R: BufRead> Iterator for LineReader<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().transpose()
    }
}
