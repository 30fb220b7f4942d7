//! Builders that make of a fuzzer's bytes inputs which get past the first check.

pub mod paths;
