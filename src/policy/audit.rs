//! `[audit]`: what is logged and for how long. Read and checked here; `store` acts on it.

use std::time::Duration;

use super::emit::{Block, string};
use super::error::PolicyError;
use super::section::Section;
use super::units::format_duration;

pub(super) const KEYS: &[&str] = &["enabled", "reads", "keep"];

const READS: [(&str, AuditReads); 3] = [
    ("off", AuditReads::Off),
    ("buffered", AuditReads::Buffered),
    ("durable", AuditReads::Durable),
];
/// Shortest and longest time to keep entries: 1 day to 1,000 years.
const KEEP: (Duration, Duration) = (
    Duration::from_secs(86_400),
    Duration::from_secs(1_000 * 365 * 86_400),
);

/// `[audit]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Audit {
    /// Whether operations are logged.
    pub enabled: bool,
    /// How views are logged.
    pub reads: AuditReads,
    /// How long entries are kept.
    pub keep: Duration,
}

/// How views are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditReads {
    /// Not at all.
    Off,
    /// Soon, in the background; a crash can lose the last second.
    #[default]
    Buffered,
    /// Before the reply.
    Durable,
}

impl Audit {
    pub(super) fn parse(section: &Section<'_>) -> Result<Self, PolicyError> {
        section.accept(KEYS)?;
        Ok(Self {
            enabled: section.required("enabled")?.boolean()?,
            reads: section.required("reads")?.choice(&READS)?,
            keep: section.required("keep")?.duration(KEEP.0, KEEP.1)?,
        })
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let reads = READS
            .iter()
            .find(|(_, choice)| *choice == self.reads)
            .map_or("", |(word, _)| word);
        vec![Block::table(
            "audit",
            vec![
                ("enabled".to_owned(), self.enabled.to_string()),
                ("reads".to_owned(), string(reads)),
                ("keep".to_owned(), string(&format_duration(self.keep))),
            ],
        )]
    }
}
