//! The side of the process that holds the store: takes commands of other processes of the
//! same user, one thread for each, and runs them like its own.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use strongroom::Vault;
use strongroom::key::{OsRandom, Random};

use super::super::args::{Cli, Command};
use super::super::desk::{self, Desk};
use super::super::failure::{Exit, Failure, Stop};
use super::super::held::Gate;
use super::frame::Kind;
use super::relay::{self, Request};
use super::{Address, GREETING, NAME, PROOF_BYTES, REQUEST_BYTES_MAX, calls};

/// Connections at once. One more is closed without a word.
const CONNECTIONS_MAX: usize = 64;

/// How long a request may take to arrive, all of it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the other process may leave output unread. An `exec` and a handle may for
/// longer, until the holder comes to its end: no lock is held while an answer is written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long to wait where no connection can be taken, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The control socket of an open store, served until [`Control::finish`].
pub struct Control {
    socket: PathBuf,
    listener: Arc<UnixListener>,
    shared: Arc<Shared>,
}

struct Shared {
    store: PathBuf,
    vault: Vault,
    gate: Arc<Gate>,
    connections: Mutex<Connections>,
    one_ended: Condvar,
}

#[derive(Default)]
struct Connections {
    is_closing: bool,
    next: u64,
    open: HashMap<u64, UnixStream>,
}

impl Control {
    /// Serves the store's socket. The caller holds the store, so a socket that is there
    /// already was left behind by a process that was killed.
    pub fn serve(store: &Path, vault: &Vault, gate: &Arc<Gate>) -> io::Result<Self> {
        let socket = store.join(NAME);
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = Arc::new(UnixListener::bind(Address::of(store)?.path)?);
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        let shared = Arc::new(Shared {
            store: store.to_path_buf(),
            vault: vault.clone(),
            gate: Arc::clone(gate),
            connections: Mutex::default(),
            one_ended: Condvar::new(),
        });
        let accepting = (Arc::clone(&shared), Arc::clone(&listener));
        std::thread::Builder::new()
            .name("strongroom-control".to_owned())
            .spawn(move || accept(&accepting.0, &accepting.1))?;
        Ok(Self {
            socket,
            listener,
            shared,
        })
    }

    /// Takes no more commands. Those that run go on.
    pub fn stop(&self) {
        let mut connections = self.shared.connections();
        if !connections.is_closing {
            connections.is_closing = true;
            // While the store is still held: afterwards the name may be the next holder's.
            let _removed = fs::remove_file(&self.socket);
            // Ends the thread that accepts, also where a child made by `fork` has a copy.
            let _ended = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both);
        }
    }

    /// Takes no more commands and waits for those that run. An `exec`, and
    /// another process's handle, end with the call that they are at.
    pub fn finish(&self) {
        self.stop();
        let mut connections = self.shared.connections();
        for connection in connections.open.values() {
            let _ended = connection.shutdown(Shutdown::Read);
        }
        while !connections.open.is_empty() {
            connections = self
                .shared
                .one_ended
                .wait(connections)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A place among the connections, if there is one.
    fn admit(self: &Arc<Self>, connection: &UnixStream) -> Option<Place> {
        let copy = connection.try_clone().ok()?;
        let mut connections = self.connections();
        if connections.is_closing || connections.open.len() >= CONNECTIONS_MAX {
            return None;
        }
        let number = connections.next;
        connections.next += 1;
        connections.open.insert(number, copy);
        Some(Place {
            shared: Arc::clone(self),
            number,
        })
    }
}

/// One connection's place, free again when this is dropped.
struct Place {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.connections().open.remove(&self.number);
        self.shared.one_ended.notify_all();
    }
}

fn accept(shared: &Arc<Shared>, listener: &UnixListener) {
    for connection in listener.incoming() {
        if shared.connections().is_closing {
            return;
        }
        let Ok(connection) = connection else {
            std::thread::sleep(PAUSE);
            continue;
        };
        if !is_same_user(&connection) {
            continue;
        }
        let Some(place) = shared.admit(&connection) else {
            continue;
        };
        // Without a thread the connection is closed, as if there were too many.
        let _started = std::thread::Builder::new()
            .name("strongroom-command".to_owned())
            .spawn(move || {
                let serve = AssertUnwindSafe(|| serve(&place.shared, &connection));
                if !matches!(panic::catch_unwind(serve), Ok(Ok(()))) {
                    // Whoever is there sees the connection end without an exit code.
                    let _ended = connection.shutdown(Shutdown::Both);
                }
            });
    }
}

/// The modes of socket and directory say so already; they may have been changed since.
fn is_same_user(connection: &UnixStream) -> bool {
    socket_peercred(connection).is_ok_and(|peer| peer.uid == geteuid())
}

fn serve(shared: &Arc<Shared>, connection: &UnixStream) -> io::Result<()> {
    connection.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut challenge = [0; PROOF_BYTES];
    OsRandom
        .fill(&mut challenge)
        .map_err(|_| ErrorKind::Other)?;
    { connection }.write_all(&[GREETING, &challenge].concat())?;
    let Requested {
        proof,
        challenge: theirs,
        request,
    } = read_request(connection)?;
    connection.set_read_timeout(None)?;

    let message = [challenge.as_slice(), &theirs, &request].concat();
    let is_proof = shared.vault.is_proof(&message, &proof);
    let asked = if !is_proof {
        Err(not_proved())
    } else if request == calls::REQUEST {
        Ok(Asked::Calls)
    } else {
        command(shared, &request).map(|command| Asked::Command(Box::new(command)))
    };
    let is_session = asked.as_ref().is_ok_and(Asked::is_session);
    let closing = Arc::clone(shared);
    let desk = Rc::new(Desk {
        vault: shared.vault.clone(),
        gate: Arc::clone(&shared.gate),
        connection: connection.try_clone()?,
        gives_up: Box::new(move || !is_session || closing.connections().is_closing),
    });
    if is_proof {
        desk.send(Kind::Proof, &shared.vault.answer_proof(&message))?;
    }
    let exit = desk::on_behalf(&desk, || {
        Ok::<_, io::Error>(match asked {
            Ok(Asked::Calls) => calls::serve(&desk).map(|()| 0)?,
            Ok(Asked::Command(command)) => super::super::end(super::super::run_command(&command)),
            Err(stop) => super::super::end(Err(stop)),
        })
    })?;
    desk.send(Kind::Exit, &[exit])
}

/// What the other process wants.
enum Asked {
    /// To have tool calls carried out.
    Calls,
    /// To have its command done.
    Command(Box<Command>),
}

impl Asked {
    /// Whether it goes on until the other process ends it.
    fn is_session(&self) -> bool {
        match self {
            Self::Calls => true,
            Self::Command(command) => matches!(**command, Command::Exec(_)),
        }
    }
}

/// The command that the other process asks for, ready to run here.
fn command(shared: &Shared, request: &[u8]) -> Result<Command, Stop> {
    let request: Request = serde_json::from_slice(request).map_err(|_| unknown())?;
    let words = relay::with_store(&request.args, &shared.store);
    let mut command = Cli::try_parse_from(words).map_err(|_| unknown())?.command;
    relay::admit(&mut command, &request.cwd)?;
    Ok(command)
}

/// What the other process sends.
struct Requested {
    proof: [u8; PROOF_BYTES],
    challenge: [u8; PROOF_BYTES],
    request: Vec<u8>,
}

/// Reads it, all within the time limit, however slowly it comes.
fn read_request(connection: &UnixStream) -> io::Result<Requested> {
    let until = Instant::now() + REQUEST_TIMEOUT;
    let mut length = [0; 4];
    read_until(connection, &mut length, until)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > REQUEST_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut proof = [0; PROOF_BYTES];
    read_until(connection, &mut proof, until)?;
    let mut challenge = [0; PROOF_BYTES];
    read_until(connection, &mut challenge, until)?;
    let mut request = vec![0; length];
    read_until(connection, &mut request, until)?;
    Ok(Requested {
        proof,
        challenge,
        request,
    })
}

fn read_until(mut connection: &UnixStream, bytes: &mut [u8], until: Instant) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(rest) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn not_proved() -> Stop {
    Failure::new(
        Exit::Key,
        "use the key: the process that holds the store does not accept it",
        "Check that this is the key of this store.",
    )
    .into()
}

fn unknown() -> Stop {
    Failure::new(
        Exit::Locked,
        format!(
            "use the store: process {} holds it, and is of another version that does not know this command",
            std::process::id()
        ),
        "End that process, or wait for it.",
    )
    .into()
}
