//! Builders that make of a fuzzer's bytes inputs which get past the first check, and plain models to compare with.

pub mod backups;
pub mod commands;
pub mod disk;
pub mod keys;
pub mod memory;
pub mod mutation;
pub mod naive;
pub mod paths;
pub mod planted;
pub mod policies;
pub mod records;
pub mod session;
pub mod texts;

#[cfg(test)]
mod testing;
