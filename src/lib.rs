//! strongroom: a hardened, encrypted handler for Claude's memory tool.

pub mod edit;
pub mod key;
pub mod path;
pub mod policy;
pub mod redact;
pub mod wire;
