//! The path guard: turns the path strings of a model into [`MemoryPath`]s, or says why it will not.
//!
//! Nothing below the guard takes a path as `&str`. Its rules, in order (one file each):
//! the frame and the order (`guard`), the characters (`chars`), percent escapes, which are never
//! decoded (`percent`), one component (`component`). `suggest` looks for a near name that would
//! pass, `quote` shows hostile text safely. `tenant` does the same job for tenant names.
//!
//! ```
//! use strongroom::path::Guard;
//!
//! let guard = Guard::new();
//! let path = guard.check("/memories//projects/./alpha.md")?;
//! assert_eq!(path.as_str(), "/memories/projects/alpha.md");
//!
//! let error = guard.check("/memories/../etc/passwd").unwrap_err();
//! assert_eq!(error.to_string(), "Path /memories/../etc/passwd would escape /memories directory");
//! # Ok::<(), strongroom::path::GuardError>(())
//! ```

mod chars;
mod component;
mod error;
mod guard;
mod memory_path;
mod percent;
mod quote;
mod suggest;
mod tenant;

#[cfg(test)]
mod tests;

pub use chars::CharacterClass;
pub use error::{GuardError, Problem, Suggestion};
pub use guard::Guard;
pub use memory_path::MemoryPath;
pub use quote::Quoted;
pub use tenant::{TenantName, TenantNameError};

/// The directory all paths lie in, and the canonical path of the root.
pub const ROOT: &str = "/memories";
/// Most UTF-8 bytes of a path, before and after normalisation.
pub const PATH_BYTES_MAX: usize = 1024;
/// Most UTF-8 bytes of one component, after normalisation (NFC).
pub const COMPONENT_BYTES_MAX: usize = 255;
/// Most components below `/memories`.
pub const DEPTH_MAX: usize = 32;
/// Most combining marks (categories Mn and Me) in a row, in decomposed form (NFD).
pub const COMBINING_RUN_MAX: usize = 4;
/// Most times that percent escapes are looked through for escapes inside them; text that would
/// still decode to something then is refused.
pub const ESCAPE_LAYERS_MAX: usize = 5;
/// Most bytes of a tenant name.
pub const TENANT_NAME_BYTES_MAX: usize = 128;
/// Most characters of refused text that an error shows.
pub const QUOTED_CHARS_MAX: usize = 200;
