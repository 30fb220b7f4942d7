//! What the server says on stderr: one JSON object a line, without content, paths or tokens.
//!
//! A thread of its own writes, so that a reader of stderr who is slow, or gone, holds up no
//! request. Lines that find no room are counted and dropped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};
use strongroom::clock::{Clock, SystemClock};

use super::super::{desk, time};

/// Lines that may wait to be written.
const LINES_MAX: usize = 4_096;

/// How long the end of the server waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Log {
    lines: SyncSender<String>,
    dropped: AtomicU64,
}

/// The log's other end, for the end of the server.
pub struct Written(Receiver<()>);

impl Log {
    pub fn start() -> std::io::Result<(Self, Written)> {
        let (lines, waiting) = sync_channel::<String>(LINES_MAX);
        let (end, written) = sync_channel(1);
        std::thread::Builder::new()
            .name("strongroom-log".to_owned())
            .spawn(move || {
                for line in waiting {
                    desk::write_err(line.as_bytes());
                }
                let _told = end.send(());
            })?;
        let log = Self {
            lines,
            dropped: AtomicU64::new(0),
        };
        Ok((log, Written(written)))
    }

    /// One event. `fields` is an object.
    pub fn event(&self, event: &str, fields: Value) {
        let mut line = json!({ "time": time::utc(SystemClock.now()), "event": event });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                line.insert("lines_dropped_before".to_owned(), dropped.into());
            }
        }
        if self.lines.try_send(format!("{line}\n")).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Written {
    /// Waits a moment for the last lines, once the log itself is gone.
    pub fn wait(self) {
        let _written = self.0.recv_timeout(FLUSH_TIMEOUT);
    }
}
