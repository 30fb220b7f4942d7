//! An entry of a directory: a file's description, or a sub-directory with its summary.

use crate::clock::UnixMillis;

use super::codec::{Decoder, Encoder};
use super::{CHUNK_BYTES, ContentId, NodeId, RecordError, Share, Summary};

/// One entry of a directory. Its name is text that the path guard accepted.
#[derive(Clone, PartialEq, Eq)]
pub struct Dirent {
    /// The entry's name.
    pub name: String,
    /// The directory it lies in, once more.
    pub directory: NodeId,
    /// The entry's own id; for a directory the id under which its entries lie.
    pub node: NodeId,
    /// What it is.
    pub body: DirentBody,
}

/// What an entry is.
#[derive(Clone, PartialEq, Eq)]
pub enum DirentBody {
    /// A directory, with what lies below it.
    Directory {
        /// What lies below.
        summary: Summary,
        /// When it was last renamed, which counts as an access to all below.
        moved_at: UnixMillis,
    },
    /// A file.
    File(FileMeta),
    /// In the list of holds (the entry's name is the held path): not a file or directory.
    Hold(Hold),
}

/// Why and until when a path is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The operator's reason, at most [`HOLD_REASON_BYTES_MAX`] bytes.
    pub reason: String,
    /// When it was set.
    pub created: UnixMillis,
    /// From when on it no longer holds; `None` is never.
    pub until: Option<UnixMillis>,
}

/// The longest reason of a hold, in bytes.
pub const HOLD_REASON_BYTES_MAX: usize = 1_024;

/// Whether a file is text, or bytes that the host put there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// UTF-8 text that the agent can edit.
    Text,
    /// Bytes, such as an image.
    Bytes,
}

/// All that is known of a file but its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMeta {
    /// Text or bytes.
    pub kind: FileKind,
    /// Under which id the content's chunks lie.
    pub content: ContentId,
    /// Length of the content in bytes, unpadded.
    pub bytes: u64,
    /// Lines of the content (0 for bytes).
    pub lines: u64,
    /// When it was created.
    pub created: UnixMillis,
    /// When its content was last written.
    pub modified: UnixMillis,
    /// When it was last viewed or written.
    pub accessed: UnixMillis,
    /// The digest of the policy under which it was written.
    pub policy_digest: [u8; 32],
}

impl FileMeta {
    /// How many chunks the padded content was cut into.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        let padded = padded_content_bytes(self.bytes);
        u32::try_from(padded.div_ceil(CHUNK_BYTES as u64)).unwrap_or(u32::MAX)
    }
}

/// The length to which a content of `bytes` is padded: PADMÉ, and at least 256.
///
/// PADMÉ (Nikitin et al., "Reducing Metadata Leakage from Encrypted Files and
/// Communication with PURBs", 2019) keeps only the top bits of a length, which costs at
/// most 12 %. It hardly pads short files, so those get a floor. No content, no padding.
#[must_use]
pub fn padded_content_bytes(bytes: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    let bytes = bytes.max(256);
    let exponent = bytes.ilog2();
    let kept_bits = exponent.ilog2() + 1;
    let mask = (1_u64 << (exponent - kept_bits)) - 1;
    bytes.saturating_add(mask) & !mask
}

impl Dirent {
    /// What this entry adds to the totals above it.
    #[must_use]
    pub fn share(&self) -> Share {
        let own_reach = 1 + self.name.len() as u64;
        match &self.body {
            DirentBody::Directory { summary, .. } => Share {
                directories: summary.below.directories.saturating_add(1),
                height: summary.below.height.saturating_add(1),
                reach: summary.below.reach.saturating_add(own_reach),
                ..summary.below
            },
            DirentBody::Hold(_) => Share::NOTHING,
            DirentBody::File(file) => Share {
                files: 1,
                directories: 0,
                bytes: file.bytes,
                oldest: file.accessed,
                born: file.created,
                height: 1,
                reach: own_reach,
            },
        }
    }

    /// The record's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.bytes(self.name.as_bytes())
            .array(&self.directory.0)
            .array(&self.node.0);
        match &self.body {
            DirentBody::Directory { summary, moved_at } => {
                out.u8(0).u64(*moved_at);
                summary.encode(&mut out);
            }
            DirentBody::Hold(hold) => {
                out.u8(3)
                    .bytes(hold.reason.as_bytes())
                    .u64(hold.created)
                    .u64(hold.until.unwrap_or(UnixMillis::MAX));
            }
            DirentBody::File(file) => {
                out.u8(match file.kind {
                    FileKind::Text => 1,
                    FileKind::Bytes => 2,
                });
                out.array(&file.content.0)
                    .u64(file.bytes)
                    .u64(file.lines)
                    .u64(file.created)
                    .u64(file.modified)
                    .u64(file.accessed)
                    .array(&file.policy_digest);
            }
        }
        out.finish()
    }

    /// The entry that these bytes are.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut from = Decoder::new("directory entry", bytes);
        let name = from.text()?;
        let directory = NodeId(from.array()?);
        let node = NodeId(from.array()?);
        let body = match from.u8()? {
            0 => {
                let moved_at = from.u64()?;
                DirentBody::Directory {
                    summary: Summary::decode(&mut from)?,
                    moved_at,
                }
            }
            kind @ (1 | 2) => DirentBody::File(FileMeta {
                kind: if kind == 1 {
                    FileKind::Text
                } else {
                    FileKind::Bytes
                },
                content: ContentId(from.array()?),
                bytes: from.u64()?,
                lines: from.u64()?,
                created: from.u64()?,
                modified: from.u64()?,
                accessed: from.u64()?,
                policy_digest: from.array()?,
            }),
            3 => {
                let reason = from.text()?;
                let created = from.u64()?;
                let until = from.u64()?;
                let until = (until != UnixMillis::MAX).then_some(until);
                DirentBody::Hold(Hold {
                    reason,
                    created,
                    until,
                })
            }
            _ => return Err(from.malformed()),
        };
        from.finish()?;
        Ok(Self {
            name,
            directory,
            node,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::SetHash;

    #[test]
    fn padding_follows_padme_with_a_floor() {
        for (bytes, padded) in [
            (0, 0),
            (1, 256),
            (256, 256),
            (257, 272),
            (4_096, 4_096),
            (4_097, 4_352),
            (65_537, 67_584),
        ] {
            assert_eq!(padded_content_bytes(bytes), padded, "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn padding_never_shrinks_nor_wastes(bytes in 1_u64..1 << 40) {
            let padded = padded_content_bytes(bytes);
            prop_assert!(padded >= bytes);
            prop_assert!(padded <= 256.max(bytes + bytes / 8));
            prop_assert_eq!(padded_content_bytes(padded), padded);
        }

        #[test]
        fn entries_survive_the_round_trip(name in "[^/]{1,40}", node: [u8; 16], at: u64, dir: bool) {
            let body = if dir {
                DirentBody::Directory {
                    summary: Summary { entries: at, set_hash: SetHash([7; 32]), below: Share::NOTHING },
                    moved_at: at,
                }
            } else {
                DirentBody::File(FileMeta {
                    kind: FileKind::Text,
                    content: ContentId(node),
                    bytes: at,
                    lines: at / 2,
                    created: 1,
                    modified: 2,
                    accessed: 3,
                    policy_digest: [9; 32],
                })
            };
            let entry = Dirent { name, directory: NodeId::ROOT, node: NodeId(node), body };
            let bytes = entry.encode();
            prop_assert!(Dirent::decode(&bytes).is_ok_and(|back| back == entry));
            for cut in 0..bytes.len() {
                prop_assert!(Dirent::decode(&bytes[..cut]).is_err());
            }
            prop_assert!(Dirent::decode(&[&bytes[..], &[0]].concat()).is_err());
        }

        #[test]
        fn decoding_any_bytes_never_panics(bytes: Vec<u8>) {
            let _ = Dirent::decode(&bytes);
        }
    }
}
