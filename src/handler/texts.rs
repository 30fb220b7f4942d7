//! The exact words of replies that are not about an edit.

use crate::error::{Code, Error};
use crate::path::{DEPTH_MAX, MemoryPath, PATH_BYTES_MAX};
use crate::store::StoreError;
use crate::wire::Reply;

pub(super) fn missing_view(path: &MemoryPath) -> String {
    format!("The path {path} does not exist. Please provide a valid path.")
}

pub(super) fn missing_edit(path: &MemoryPath) -> String {
    format!("Error: The path {path} does not exist. Please provide a valid path.")
}

pub(super) fn missing(path: &MemoryPath) -> String {
    format!("Error: The path {path} does not exist")
}

pub(super) fn created(path: &MemoryPath) -> String {
    format!("File created successfully at: {path}")
}

pub(super) fn exists(path: &MemoryPath) -> String {
    format!("Error: File {path} already exists")
}

pub(super) fn is_directory(path: &MemoryPath) -> String {
    format!("Error: {path} is a directory")
}

pub(super) fn not_a_directory(path: &MemoryPath) -> String {
    format!("Error: {path} is a file, not a directory")
}

pub(super) fn not_text(path: &MemoryPath) -> String {
    format!(
        "Error: {path} is an image, not text. It can be viewed, renamed and deleted, not edited"
    )
}

pub(super) fn image_too_large(path: &MemoryPath, bytes: usize, limit: u64) -> String {
    format!("Error: {path} is not shown: the image is too large, {bytes} of {limit} bytes")
}

pub(super) fn not_showable(path: &MemoryPath) -> String {
    format!(
        "Error: {path} holds bytes that are neither text nor an image of its name's kind, so it cannot be shown"
    )
}

pub(super) fn inserted(path: &MemoryPath) -> String {
    format!("The file {path} has been edited.")
}

pub(super) fn deleted(path: &MemoryPath) -> String {
    format!("Successfully deleted {path}")
}

pub(super) const DELETE_ROOT: &str = "Error: Cannot delete the /memories directory itself";

pub(super) const CLEARED: &str = "All memory was cleared";

pub(super) fn not_cleared(left: usize, first: &str) -> String {
    let first = first.strip_prefix("Error: ").unwrap_or(first);
    format!(
        "Error: Not all memory was cleared: {left} of the entries of /memories stay, which policy or a hold keeps. The first: {first}"
    )
}

pub(super) const RENAME_ROOT: &str = "Error: Cannot rename the /memories directory itself";

pub(super) fn renamed(from: &MemoryPath, to: &MemoryPath) -> String {
    format!("Successfully renamed {from} to {to}")
}

pub(super) fn destination_exists(to: &MemoryPath) -> String {
    format!("Error: The destination {to} already exists")
}

pub(super) fn into_itself(from: &MemoryPath) -> String {
    format!("Error: Cannot move {from} into itself")
}

pub(super) fn too_deep(from: &MemoryPath, to: &MemoryPath) -> String {
    format!(
        "Error: Cannot move {from} to {to}: paths below it would have more than {DEPTH_MAX} levels or {PATH_BYTES_MAX} bytes. Choose a shorter destination"
    )
}

pub(super) fn held(path: &str) -> String {
    format!(
        "Error: {path} was not written: it is under a hold and cannot be changed, moved or deleted. Write to another path"
    )
}

pub(super) fn only_read(path: &MemoryPath) -> String {
    format!("Error: {path} was not written: this memory can only be read here. Tell the user")
}

pub(super) fn too_many_lines(path: &MemoryPath) -> String {
    format!("File {path} exceeds maximum line limit of 999,999 lines.")
}

/// What the model reads when the store itself fails. It names no host path and no detail;
/// the host gets the error itself.
pub(super) fn failed(error: &Error) -> Reply {
    if matches!(error, Error::Store(StoreError::OutcomeUnknown)) {
        return Reply::error(
            "Error: It is unknown whether the command was carried out, because the memory store failed meanwhile. Tell the user; view the path again once the store works",
        );
    }
    let what = match error.code() {
        Code::Integrity => "The memory store found damaged data and refused to use it",
        Code::NoSpace => "The memory store's disk is full, nothing was written",
        Code::Key => "The memory store cannot use the keys of this memory",
        Code::Locked => "The memory store is in use by another process",
        _ if matches!(error, Error::Store(StoreError::ReadOnly)) => {
            "The memory can only be read here, nothing was written"
        }
        _ => "The memory store could not carry out the command",
    };
    Reply::error(format!(
        "Error: {what} ({}). Tell the user; trying again will not help",
        error.code().as_str()
    ))
}
