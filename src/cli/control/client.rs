//! The side of the process that found the store held: hands its command over and passes on
//! what comes back.

use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use strongroom::key::{OsRandom, Random};
use strongroom::{Error, Proof, VaultBuilder};

use super::super::desk;
use super::super::failure::{Exit, Failure, Stop};
use super::frame::{self, Kind};
use super::relay::{Request, without_store_and_key};
use super::{Address, GREETING, PROOF_BYTES, REQUEST_BYTES_MAX};

/// How long the holder may take to greet.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that the holder has greeted, and that has shown no key yet.
pub struct Unproved {
    connection: UnixStream,
    challenge: [u8; PROOF_BYTES],
}

/// A process that holds the store and takes commands.
pub struct Elsewhere {
    unproved: Unproved,
    /// With the key, to show that it opens the store.
    builder: VaultBuilder,
}

/// Turns "locked" into the process that holds the store, where that one takes commands.
pub fn elsewhere(store: &Path, builder: VaultBuilder, locked: Error) -> Stop {
    match connect(store) {
        Ok(unproved) => Stop::Elsewhere(Box::new(Elsewhere { unproved, builder })),
        Err(_) => locked.into(),
    }
}

/// Connects to whoever holds the store.
///
/// # Errors
/// When nobody serves its socket, or does so too slowly or in another way.
pub fn connect(store: &Path) -> io::Result<Unproved> {
    let mut connection = UnixStream::connect(Address::of(store)?.path)?;
    connection.set_read_timeout(Some(GREETING_TIMEOUT))?;
    let mut greeting = [0; GREETING.len()];
    connection.read_exact(&mut greeting)?;
    if greeting != GREETING {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut challenge = [0; PROOF_BYTES];
    connection.read_exact(&mut challenge)?;
    connection.set_read_timeout(None)?;
    Ok(Unproved {
        connection,
        challenge,
    })
}

impl Unproved {
    /// Sends the request, with the proof that this process's key opens the store. An error
    /// of the socket says that the holder has nothing of it to carry out.
    pub fn send(
        self,
        builder: &VaultBuilder,
        request: &[u8],
    ) -> Result<io::Result<(UnixStream, Holder)>, Error> {
        let mut own = [0; PROOF_BYTES];
        OsRandom.fill(&mut own)?;
        // The proof is for this request only: whoever sits in between cannot change it.
        let message = [self.challenge.as_slice(), &own, request].concat();
        let proof = builder.prove(&message)?;
        let length = u32::try_from(request.len()).unwrap_or(u32::MAX);
        let bytes = proof.to_bytes();
        let sent = [&length.to_be_bytes(), bytes.as_slice(), &own, request].concat();
        let written = (&self.connection).write_all(&sent);
        let holder = Holder {
            proof,
            is_proved: false,
        };
        Ok(written.map(|()| (self.connection, holder)))
    }
}

/// Whether the other side has shown that it has a key of the store.
pub struct Holder {
    proof: Proof,
    is_proved: bool,
}

impl Holder {
    /// Looks at a frame that came. Says whether it is one to act on: the answer to the proof
    /// is not.
    ///
    /// # Errors
    /// When it must not be believed: only that nothing was done may be said without an answer.
    pub fn admit(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<bool> {
        match kind {
            Kind::Proof if !self.is_proved && self.proof.is_answer(bytes) => {
                self.is_proved = true;
                Ok(false)
            }
            Kind::Proof => Err(ErrorKind::PermissionDenied.into()),
            Kind::Out | Kind::Err | Kind::Exit if self.is_proved => Ok(true),
            Kind::Exit if bytes == [Exit::Key as u8] => Ok(true),
            Kind::Err => Ok(true),
            Kind::Out | Kind::Exit => Err(ErrorKind::PermissionDenied.into()),
        }
    }
}

/// Has this process's command done over there. Returns its exit code.
pub fn relay(holder: Elsewhere, with_input: bool) -> Result<u8, Stop> {
    let request = request()?;
    let sent = holder.unproved.send(&holder.builder, &request)?;
    let (connection, mut holder) = sent.map_err(|_| gone())?;
    loop {
        let (kind, bytes) = frame::read(&mut &connection).map_err(|_| gone())?;
        if !holder.admit(kind, &bytes).map_err(|_| not_the_holder())? {
            if with_input {
                send_input(&connection).map_err(|_| gone())?;
            }
            continue;
        }
        match kind {
            Kind::Proof => {}
            Kind::Out => super::super::output::print_bytes(&bytes)?,
            Kind::Err => desk::write_err(&bytes),
            Kind::Exit => return Ok(bytes.first().copied().unwrap_or(Exit::Other as u8)),
        }
    }
}

fn request() -> Result<Vec<u8>, Stop> {
    let args = without_store_and_key(env::args_os().skip(1));
    let request = args.zip(env::current_dir().ok()).and_then(|(args, cwd)| {
        let request = serde_json::to_vec(&Request { args, cwd }).ok()?;
        (request.len() <= REQUEST_BYTES_MAX).then_some(request)
    });
    request.ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "hand the command to the process that holds the store: it is too long, or not UTF-8",
            "Write it shorter, run it from a directory with a plain name, or end that process.",
        )
        .into()
    })
}

/// Passes stdin on, on a thread of its own that ends with the process at the latest.
fn send_input(connection: &UnixStream) -> io::Result<()> {
    let mut connection = connection.try_clone()?;
    std::thread::Builder::new()
        .name("strongroom-input".to_owned())
        .spawn(move || {
            let _copied = io::copy(&mut io::stdin().lock(), &mut connection);
            let _ended = connection.shutdown(Shutdown::Write);
        })?;
    Ok(())
}

fn not_the_holder() -> Stop {
    Failure::new(
        Exit::Locked,
        "use the store: what serves its control socket has no key of it",
        "Find out which process made the file `control` in the store's directory, and end it.",
    )
    .into()
}

fn gone() -> Stop {
    Failure::new(
        Exit::Other,
        "finish: the process that holds the store ended, or did not take the command",
        "Look whether it was carried out, then run it again.",
    )
    .into()
}
