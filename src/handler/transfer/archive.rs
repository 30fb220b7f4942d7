//! Export to and import from a tar stream: plain tar, written in the GNU form, read also as
//! ustar and pax.
//!
//! Only the header's encoding comes from the `tar` crate. Its reader collects long names in
//! memory without a limit and takes a cut archive for a whole one; nothing of what it does
//! for unpacking is needed here.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use tar::{EntryType, Header};

use crate::clock::UnixMillis;

use super::{ExportSink, ImportSource, SinkError, SourceEntry, SourceKind};

const BLOCK_BYTES: usize = 512;

/// The longest name or pax header that is read, in bytes. A path has at most 1,024.
const EXTENSION_BYTES_MAX: u64 = 64 * 1_024;

/// A tar stream to export to: files 0600, directories 0700, owner 0, no names of users.
pub struct ToTar<W: Write> {
    out: W,
}

impl<W: Write> ToTar<W> {
    /// Writes to `out`, which is flushed at the end.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn entry(
        &mut self,
        kind: EntryType,
        path: &str,
        content: &[u8],
        modified: UnixMillis,
    ) -> io::Result<()> {
        if path.len() > NAME_BYTES {
            // GNU's long name: an entry whose content is the name of the next, NUL at its end.
            let name = [path.as_bytes(), &[0]].concat();
            let header = header(EntryType::GNULongName, "././@LongLink", name.len(), 0);
            self.blocks(&header, &name)?;
        }
        let header = header(kind, path, content.len(), modified / 1_000);
        self.blocks(&header, content)
    }

    fn blocks(&mut self, header: &Header, content: &[u8]) -> io::Result<()> {
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(content)?;
        let padding = content.len().next_multiple_of(BLOCK_BYTES) - content.len();
        self.out
            .write_all([0; BLOCK_BYTES].get(..padding).unwrap_or_default())
    }
}

impl<W: Write> ExportSink for ToTar<W> {
    fn directory(&mut self, path: &str, modified: UnixMillis) -> Result<(), SinkError> {
        Ok(self.entry(EntryType::Directory, &format!("{path}/"), &[], modified)?)
    }

    fn file(&mut self, path: &str, content: &[u8], modified: UnixMillis) -> Result<(), SinkError> {
        Ok(self.entry(EntryType::Regular, path, content, modified)?)
    }

    /// Only here the end of the archive is written: without it, what is left is a cut one.
    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK_BYTES])?;
        self.out.flush()
    }
}

/// The length of the name field, in bytes.
const NAME_BYTES: usize = 100;

fn header(kind: EntryType, path: &str, bytes: usize, seconds: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(if kind == EntryType::Directory {
        0o700
    } else {
        0o600
    });
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(bytes as u64);
    header.set_mtime(seconds);
    if let Some(gnu) = header.as_gnu_mut() {
        for (field, byte) in gnu.name.iter_mut().zip(path.bytes()) {
            *field = byte;
        }
    }
    header.set_cksum();
    header
}

/// A tar stream to import from. Compressed ones are not read.
pub struct FromTar<R: Read> {
    input: R,
}

impl<R: Read> FromTar<R> {
    /// Reads from `input`, a block of 512 bytes at a time: give it a buffer.
    pub fn new(input: R) -> Self {
        Self { input }
    }
}

impl<R: Read> ImportSource for FromTar<R> {
    /// Hard and symbolic links, devices, FIFOs and sparse files come as refused.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for what is no tar archive, or one that two programs
    /// could read differently; [`io::ErrorKind::UnexpectedEof`] for one without its end.
    fn visit(
        &mut self,
        each: &mut dyn FnMut(SourceEntry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut about_next = Extension::default();
        while let Some(header) = self.header()? {
            let bytes = header.entry_size().map_err(|_| invalid())?;
            let padded = bytes
                .checked_next_multiple_of(BLOCK_BYTES as u64)
                .ok_or_else(invalid)?;
            let mut content = (&mut self.input).take(bytes);
            let kind = header.entry_type();
            if is_read_in_two_ways(&header, bytes) {
                return Err(invalid());
            }
            if kind.is_gnu_longname() {
                let name = read_extension(&mut content)?;
                if about_next.name.is_some() {
                    return Err(invalid());
                }
                about_next.name = Some(
                    name.split(|byte| *byte == 0)
                        .next()
                        .unwrap_or_default()
                        .to_vec(),
                );
            } else if kind.is_pax_local_extensions() {
                about_next.read_pax(&read_extension(&mut content)?)?;
            } else if kind.is_pax_global_extensions() {
                // Says something about all that follows. Only remarks are harmless.
                let mut about_all = Extension::default();
                about_all.read_pax(&read_extension(&mut content)?)?;
                if about_all.name.is_some() || about_all.bytes.is_some() || about_all.is_sparse {
                    return Err(invalid());
                }
            } else if !kind.is_gnu_longlink() {
                let about = std::mem::take(&mut about_next);
                if about.bytes.is_some_and(|said| said != bytes) {
                    return Err(invalid());
                }
                let name = about
                    .name
                    .unwrap_or_else(|| header.path_bytes().into_owned());
                let kind = match kind {
                    _ if about.is_sparse => SourceKind::Refused("it is a sparse file"),
                    // How a directory was written before POSIX.
                    EntryType::Regular if name.ends_with(b"/") && bytes == 0 => {
                        SourceKind::Directory
                    }
                    EntryType::Regular if name.ends_with(b"/") => {
                        SourceKind::Refused("it is a file with the name of a directory")
                    }
                    EntryType::Regular | EntryType::Continuous => SourceKind::File {
                        bytes,
                        content: &mut content,
                    },
                    EntryType::Directory => SourceKind::Directory,
                    EntryType::Symlink => SourceKind::Refused("it is a symbolic link"),
                    EntryType::Link => SourceKind::Refused("it is a hard link"),
                    EntryType::GNUSparse => SourceKind::Refused("it is a sparse file"),
                    _ => SourceKind::Refused("it is no regular file"),
                };
                if each(SourceEntry::new(&name, kind)).is_break() {
                    return Ok(());
                }
            }
            let rest = content.limit() + (padded - bytes);
            skip(&mut self.input, rest)?;
        }
        Ok(())
    }
}

impl<R: Read> FromTar<R> {
    /// The next header; `None` at the archive's end, a block of zeros.
    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut block = [0; BLOCK_BYTES];
        self.input.read_exact(&mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let header = Header::from_byte_slice(&block);
        let mut again = header.clone();
        again.set_cksum();
        match (header.cksum(), again.cksum()) {
            (Ok(stored), Ok(computed)) if stored == computed => Ok(Some(header.clone())),
            _ => Err(invalid()),
        }
    }
}

/// What comes ahead of an entry, about it.
#[derive(Default)]
struct Extension {
    name: Option<Vec<u8>>,
    bytes: Option<u64>,
    is_sparse: bool,
}

impl Extension {
    /// Reads pax records, `{length} {key}={value}\n` (POSIX.1-2001, pax, "Extended Header").
    fn read_pax(&mut self, mut records: &[u8]) -> io::Result<()> {
        while !records.is_empty() {
            let digits = records.iter().take_while(|byte| byte.is_ascii_digit());
            let digits = digits.count();
            let length: usize = records
                .get(..digits)
                .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
                .ok_or_else(invalid)?;
            let (record, rest) = records.split_at_checked(length).ok_or_else(invalid)?;
            let record = record
                .get(digits..)
                .and_then(|record| record.strip_prefix(b" ")?.strip_suffix(b"\n"))
                .ok_or_else(invalid)?;
            let at = record
                .iter()
                .position(|byte| *byte == b'=')
                .ok_or_else(invalid)?;
            let (key, value) = record.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            match key {
                // Programs differ in which of two they believe.
                b"path" if self.name.is_some() => return Err(invalid()),
                b"size" if self.bytes.is_some() => return Err(invalid()),
                b"path" => self.name = Some(value.to_vec()),
                b"size" => {
                    let bytes = std::str::from_utf8(value)
                        .ok()
                        .and_then(|text| text.parse().ok());
                    self.bytes = Some(bytes.ok_or_else(invalid)?);
                }
                key if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
            records = rest;
        }
        Ok(())
    }
}

fn read_extension(content: &mut io::Take<impl Read>) -> io::Result<Vec<u8>> {
    let bytes = content.limit();
    if bytes > EXTENSION_BYTES_MAX {
        return Err(invalid());
    }
    let mut read = Vec::new();
    content.read_to_end(&mut read)?;
    if read.len() as u64 != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(read)
}

/// Whether programs differ in where the next header stands: what has no content may say that it
/// has some, which some skip and others do not, and GNU's sparse files may have more headers.
/// Behind one of these a file could hide that is seen by one program only.
fn is_read_in_two_ways(header: &Header, bytes: u64) -> bool {
    let has_no_content = matches!(
        header.entry_type(),
        EntryType::Directory
            | EntryType::Symlink
            | EntryType::Link
            | EntryType::Char
            | EntryType::Block
            | EntryType::Fifo
    );
    let is_continued = header.entry_type() == EntryType::GNUSparse
        && header.as_gnu().is_some_and(|gnu| gnu.is_extended());
    (has_no_content && bytes > 0) || is_continued
}

fn skip(input: &mut impl Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut input.take(bytes), &mut io::sink())?;
    if skipped == bytes {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
