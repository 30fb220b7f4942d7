//! On whose behalf a command runs: its own process, or another one at the control socket.
//!
//! A command opens, prints and asks through `open`, `output` and `keys`, and these ask here.
//! That is what lets the very same functions serve both. The desk belongs to the thread; a
//! command does its work on the thread that it was called on.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use strongroom::Vault;

use super::control::frame::{self, Kind};
use super::held::Gate;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Desk>>> = const { RefCell::new(None) };
}

/// Where a command of another process finds the open store and leaves its output.
pub struct Desk {
    pub vault: Vault,
    pub gate: Arc<Gate>,
    pub connection: UnixStream,
    /// Asked each time that the other process has left output unread for the connection's
    /// write time-out.
    pub gives_up: Box<dyn Fn() -> bool>,
}

impl Desk {
    /// Sends a piece of output to the other process.
    pub fn send(&self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        frame::write(&mut Patient(self), kind, bytes)
    }
}

/// Writes to the other process for as long as the desk does not give up on it.
struct Patient<'a>(&'a Desk);

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match (&self.0.connection).write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && !(self.0.gives_up)() => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The desk of the other process, or `None` where the command is this process's own.
pub fn current() -> Option<Rc<Desk>> {
    CURRENT.with_borrow(Option::clone)
}

/// Runs `command` on behalf of the process at that desk.
pub fn on_behalf<T>(desk: &Rc<Desk>, command: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(None);
        }
    }
    let _leave = Leave;
    CURRENT.set(Some(Rc::clone(desk)));
    command()
}

/// Writes to stdout, whosever it is, and hands it on at once.
pub fn write_out(bytes: &[u8]) -> io::Result<()> {
    if let Some(desk) = current() {
        return desk.send(Kind::Out, bytes);
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Stdout, whosever it is, for what is written piece by piece.
pub fn output() -> Box<dyn Write> {
    struct ToDesk(Rc<Desk>);
    impl Write for ToDesk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(Kind::Out, bytes).map(|()| bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    match current() {
        Some(desk) => Box::new(ToDesk(desk)),
        None => Box::new(io::stdout().lock()),
    }
}

/// Writes to stderr, whosever it is. If that is closed, nobody wants it.
pub fn write_err(bytes: &[u8]) {
    let _written = match current() {
        Some(desk) => desk.send(Kind::Err, bytes),
        None => io::stderr().lock().write_all(bytes),
    };
}

/// The input, whosever it is.
pub fn input() -> io::Result<Box<dyn BufRead>> {
    match current() {
        Some(desk) => Ok(Box::new(BufReader::new(desk.connection.try_clone()?))),
        None => Ok(Box::new(io::stdin().lock())),
    }
}

/// Whether somebody at a terminal reads stderr. Never so on behalf of another process: neither
/// questions nor progress are for whoever sits at this one's terminal.
pub fn is_watched() -> bool {
    current().is_none() && io::stderr().is_terminal()
}
