//! The control socket: a process that finds the store held by another has its command done
//! there.
//!
//! ```text
//! holder -> "strongroom-control-2\n", 32 random bytes      (the challenge)
//! other  -> length (u32, big-endian), 32 bytes of proof, 32 random bytes (its own challenge),
//!           JSON {"args": [...], "cwd": "..."}
//! holder -> frames: kind (1 byte), length (u32, big-endian), bytes
//!           'p' the answer to the proof, first and only if that is right
//!           'o' stdout, 'e' stderr, 'x' exit code (1 byte, the last frame)
//! other  -> after 'p', for `exec` only: its stdin up to the end
//! ```
//!
//! A handle of another process (`crate::attach`) sends `{"calls":1}` for the JSON, and then
//! tool calls, see `calls`.
//!
//! Whoever connects shows with a keyed hash over both challenges and the request that a key of
//! theirs opens this store, so the socket gives nothing to a process that could not have opened
//! the store itself. The holder's answer, over the same under another key, shows the same of the holder:
//! without it nothing that it says counts and it gets no input. No key goes through the socket.

pub mod calls;
mod client;
pub mod frame;
mod relay;
mod server;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

pub use client::{Elsewhere, connect, elsewhere, relay};
pub use server::Control;

/// The socket's name in the store's directory.
const NAME: &str = "control";

/// What the holder says first. Another version says something else.
const GREETING: &[u8] = b"strongroom-control-2\n";

/// Bytes of a challenge, and of a proof.
const PROOF_BYTES: usize = 32;

/// The longest request in bytes.
const REQUEST_BYTES_MAX: usize = 64 * 1_024;

/// The longest path in bytes that a socket address holds, its end mark left out (`sun_path`
/// in unix(7)).
const ADDRESS_BYTES_MAX: usize = 107;

/// Where to bind or connect. A path that is too long for an address is written by way of an
/// open directory, which must stay open meanwhile.
struct Address {
    path: PathBuf,
    _directory: Option<File>,
}

impl Address {
    fn of(store: &Path) -> io::Result<Self> {
        let path = store.join(NAME);
        if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
            return Ok(Self {
                path,
                _directory: None,
            });
        }
        let directory = File::open(store)?;
        Ok(Self {
            path: PathBuf::from(format!("/proc/self/fd/{}/{NAME}", directory.as_raw_fd())),
            _directory: Some(directory),
        })
    }
}
