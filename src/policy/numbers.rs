//! The table of numeric limits: name, unit, floor, ceiling, and where each is kept.

use super::error::PolicyError;
use super::limits::EffectivePolicy;
use super::section::Field;
use super::units::format_bytes;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Bytes, written with a unit.
    Bytes,
    /// Files, rows, or Unicode scalars, written as a plain number.
    Count,
}

/// One numeric key, of which smaller is tighter.
pub(super) struct Number {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) floor: u64,
    pub(super) ceiling: u64,
    pub(super) read: fn(&EffectivePolicy) -> u64,
    pub(super) slot: fn(&mut EffectivePolicy) -> &mut u64,
}

/// How many there are.
pub(super) const NUMBER_COUNT: usize = 7;

/// All numeric keys in the order of the canonical text. docs/POLICY.md has the same table,
/// and a test compares them.
pub(super) static NUMBERS: [Number; NUMBER_COUNT] = [
    Number {
        section: "limits",
        name: "max_file_bytes",
        unit: Unit::Bytes,
        floor: 1 << 10,
        ceiling: 64 << 20,
        read: |rules| rules.limits.max_file_bytes,
        slot: |rules| &mut rules.limits.max_file_bytes,
    },
    Number {
        section: "limits",
        name: "max_image_bytes",
        unit: Unit::Bytes,
        floor: 1 << 10,
        ceiling: 16 << 20,
        read: |rules| rules.limits.max_image_bytes,
        slot: |rules| &mut rules.limits.max_image_bytes,
    },
    Number {
        section: "limits",
        name: "max_files",
        unit: Unit::Count,
        floor: 1,
        ceiling: 10_000_000,
        read: |rules| rules.limits.max_files,
        slot: |rules| &mut rules.limits.max_files,
    },
    Number {
        section: "limits",
        name: "max_total_bytes",
        unit: Unit::Bytes,
        floor: 1 << 10,
        ceiling: 1 << 40,
        read: |rules| rules.limits.max_total_bytes,
        slot: |rules| &mut rules.limits.max_total_bytes,
    },
    Number {
        section: "limits",
        name: "max_line_chars",
        unit: Unit::Count,
        floor: 100,
        ceiling: 1_000_000,
        read: |rules| rules.limits.max_line_chars,
        slot: |rules| &mut rules.limits.max_line_chars,
    },
    Number {
        section: "view",
        name: "max_chars",
        unit: Unit::Count,
        floor: 1_000,
        ceiling: 1_000_000,
        read: |rules| rules.view.max_chars,
        slot: |rules| &mut rules.view.max_chars,
    },
    Number {
        section: "view",
        name: "max_entries",
        unit: Unit::Count,
        floor: 10,
        ceiling: 100_000,
        read: |rules| rules.view.max_entries,
        slot: |rules| &mut rules.view.max_entries,
    },
];

impl Number {
    /// Reads the value within floor and ceiling.
    pub(super) fn parse(&self, field: &Field<'_>) -> Result<u64, PolicyError> {
        match self.unit {
            Unit::Bytes => field.bytes(self.floor, self.ceiling),
            Unit::Count => field.count(self.floor, self.ceiling),
        }
    }

    /// The value as TOML.
    pub(super) fn text(&self, value: u64) -> String {
        match self.unit {
            Unit::Bytes => format!("\"{}\"", format_bytes(value)),
            Unit::Count => value.to_string(),
        }
    }
}
