//! The part of a policy that can differ between tenants: limits, view, write and paths.

use super::emit::{Block, strings};
use super::error::PolicyError;
use super::numbers::NUMBERS;
use super::pattern::{Pattern, PatternSet};
use super::retention::Retention;
use super::section::{Field, Section};
use super::units::format_bytes;

pub(super) const LIMIT_KEYS: &[&str] = &[
    "max_file_bytes",
    "max_image_bytes",
    "max_files",
    "max_total_bytes",
    "max_line_chars",
    "store_max_bytes",
];
/// Those of one tenant: `store_max_bytes` holds for all together.
pub(super) const TENANT_LIMIT_KEYS: &[&str] = &[
    "max_file_bytes",
    "max_image_bytes",
    "max_files",
    "max_total_bytes",
    "max_line_chars",
];
pub(super) const VIEW_KEYS: &[&str] = &["max_chars", "max_entries"];
pub(super) const WRITE_KEYS: &[&str] = &["on_existing", "images"];
pub(super) const PATH_KEYS: &[&str] = &["portable_names", "read_only", "denied"];

/// Floor and ceiling of `store_max_bytes`: 1 MiB to 16 TiB.
pub(super) const STORE_BYTES: (u64, u64) = (1 << 20, 16 << 40);

pub(super) const ON_EXISTING: [(&str, OnExisting); 2] = [
    ("error", OnExisting::Error),
    ("overwrite", OnExisting::Overwrite),
];

/// `[limits]`: what one tenant may store. All are inclusive: exactly the limit still fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one text file. 1 KiB to 64 MiB.
    pub max_file_bytes: u64,
    /// Bytes of one image, before base64. 1 KiB to 16 MiB.
    pub max_image_bytes: u64,
    /// Files of one tenant. 1 to 10,000,000.
    pub max_files: u64,
    /// Bytes of all files of one tenant. 1 KiB to 1 TiB.
    pub max_total_bytes: u64,
    /// Unicode scalars of one line, without its LF. 100 to 1,000,000, at most `view.max_chars`.
    pub max_line_chars: u64,
    /// Bytes of all files of the whole store; `None` for `off`. 1 MiB to 16 TiB.
    pub store_max_bytes: Option<u64>,
}

/// `[view]`: how much one view shows; the rest is reached with `view_range`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct View {
    /// Unicode scalars of file text in one view. 1,000 to 1,000,000.
    pub max_chars: u64,
    /// Rows of one listing. 10 to 100,000.
    pub max_entries: u64,
}

/// What `create` does when the file is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExisting {
    /// Refuse.
    #[default]
    Error,
    /// Replace the file.
    Overwrite,
}

/// `[write]`: how writing behaves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Write {
    /// What `create` does when the file is already there.
    pub on_existing: OnExisting,
    /// Whether the host may store images.
    pub images: bool,
}

/// `[paths]`: which paths agents may use. The operator's import is not bound by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Paths {
    /// Whether names must work on every common file system (the path guard's rule 7).
    pub portable_names: bool,
    /// What agents may read but not change.
    pub read_only: PatternSet,
    /// What does not exist for agents.
    pub denied: PatternSet,
}

impl Paths {
    /// The denied pattern that covers this canonical path or a directory above it: below
    /// what does not exist, nothing exists.
    #[must_use]
    pub fn denied_by(&self, path: &str) -> Option<&Pattern> {
        self.denied.first_at_or_above(path)
    }
}

/// The rules that hold for one tenant: what the policy says for everyone, tightened by every
/// `[[tenants]]` entry that matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EffectivePolicy {
    /// `[limits]`.
    pub limits: Limits,
    /// `[view]`.
    pub view: View,
    /// `[write]`.
    pub write: Write,
    /// `[paths]`.
    pub paths: Paths,
    /// `[retention]`.
    pub retention: Retention,
}

impl EffectivePolicy {
    /// Reads the first four sections; every key must be there.
    pub(super) fn parse(root: &Section<'_>) -> Result<Self, PolicyError> {
        let mut rules = Self::default();
        let section = |name| root.required(name)?.section();
        let (limits, view) = (section("limits")?, section("view")?);
        let (write, paths) = (section("write")?, section("paths")?);
        limits.accept(LIMIT_KEYS)?;
        view.accept(VIEW_KEYS)?;
        write.accept(WRITE_KEYS)?;
        paths.accept(PATH_KEYS)?;
        for number in &NUMBERS {
            let section = if number.section == "view" {
                &view
            } else {
                &limits
            };
            *(number.slot)(&mut rules) = number.parse(&section.required(number.name)?)?;
        }
        let (floor, ceiling) = STORE_BYTES;
        rules.limits.store_max_bytes = limits
            .required("store_max_bytes")?
            .bytes_or_off(floor, ceiling)?;
        rules.write.on_existing = write.required("on_existing")?.choice(&ON_EXISTING)?;
        rules.write.images = write.required("images")?.boolean()?;
        rules.paths.portable_names = paths.required("portable_names")?.boolean()?;
        rules.paths.read_only = parse_patterns(&paths.required("read_only")?)?;
        rules.paths.denied = parse_patterns(&paths.required("denied")?)?;
        Ok(rules)
    }

    /// The first pair of values that cannot both hold: the one that must not be above the other.
    pub(super) fn conflict(&self) -> Option<[(&'static str, &'static str); 2]> {
        let limits = &self.limits;
        let total = ("limits", "max_total_bytes");
        if limits.max_line_chars > self.view.max_chars {
            // Otherwise a stored line could never be shown.
            Some([("limits", "max_line_chars"), ("view", "max_chars")])
        } else if limits.max_file_bytes > limits.max_total_bytes {
            Some([("limits", "max_file_bytes"), total])
        } else if limits.max_image_bytes > limits.max_total_bytes {
            Some([("limits", "max_image_bytes"), total])
        } else {
            None
        }
    }

    /// The sections as canonical text.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let number = |section| {
            NUMBERS
                .iter()
                .filter(move |number| number.section == section)
                .map(|number| (number.name.to_owned(), number.text((number.read)(self))))
        };
        let store = self
            .limits
            .store_max_bytes
            .map_or("off".to_owned(), format_bytes);
        let mut limits: Vec<_> = number("limits").collect();
        limits.push(("store_max_bytes".to_owned(), format!("\"{store}\"")));
        let write = vec![
            (
                "on_existing".to_owned(),
                on_existing_text(self.write.on_existing),
            ),
            ("images".to_owned(), self.write.images.to_string()),
        ];
        let paths = vec![
            (
                "portable_names".to_owned(),
                self.paths.portable_names.to_string(),
            ),
            ("read_only".to_owned(), strings(self.paths.read_only.iter())),
            ("denied".to_owned(), strings(self.paths.denied.iter())),
        ];
        vec![
            Block::table("limits", limits),
            Block::table("view", number("view").collect()),
            Block::table("write", write),
            Block::table("paths", paths),
        ]
    }
}

/// What to say about a pair of values that cannot both hold.
pub(super) fn conflict_text(lower: (&str, &str), upper: (&str, &str)) -> String {
    let (lower, upper) = (
        format!("{}.{}", lower.0, lower.1),
        format!("{}.{}", upper.0, upper.1),
    );
    format!("{lower} must not be above {upper}. Lower {lower}, or raise {upper}")
}

pub(super) fn on_existing_text(value: OnExisting) -> String {
    ON_EXISTING
        .iter()
        .find(|(_, choice)| *choice == value)
        .map_or_else(String::new, |(word, _)| format!("\"{word}\""))
}

/// Reads an array of path patterns.
pub(super) fn parse_patterns(field: &Field<'_>) -> Result<PatternSet, PolicyError> {
    field
        .items()?
        .iter()
        .map(|item| {
            let text = item.text()?;
            Pattern::parse(text)
                .map_err(|reason| item.wrong(&format!("has a pattern that {reason}")))
        })
        .collect()
}

/// Refuses patterns that no name can match while `portable_names` is on.
pub(super) fn refuse_unportable(paths: &Section<'_>) -> Result<(), PolicyError> {
    for key in ["read_only", "denied"] {
        let Some(field) = paths.field(key) else {
            continue;
        };
        for item in field.items()? {
            let pattern = Pattern::parse(item.text()?);
            if pattern.is_ok_and(|pattern| !pattern.is_portable()) {
                return Err(PolicyError::Conflict {
                    at: item.at().position(),
                    what: format!(
                        "{} has a pattern with one of : ? \" < > |, which is literal here and which \
                         no name has while paths.portable_names is true. Use * inside a part",
                        item.name()
                    ),
                });
            }
        }
    }
    Ok(())
}
