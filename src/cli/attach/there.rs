//! The way through the process that holds the store: a few connections, each for one call at a
//! time.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64ct::{Base64, Encoding};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;
use strongroom::Error;
use strongroom::key::KeyError;
use strongroom::wire::{Content, Reply};

use super::super::control::calls::{self, Call, Done};
use super::super::control::connect;
use super::super::control::frame::{self, Kind};
use super::super::failure::Exit;
use super::opener::Opener;
use super::{Answer, Failure};

/// Connections of this process at once; a further call waits for one.
const CONNECTIONS_MAX: usize = 8;

/// Connections that are kept for later calls. The holder has places for a few dozen only, and the
/// operator's commands need one too.
const IDLE_MAX: usize = 2;

/// How long the holder is waited for before it is looked whether it still lives. A child that
/// it forked would keep its connections open.
const LOOK: Duration = Duration::from_secs(1);

/// A holder that takes calls.
pub struct There {
    opener: Arc<Opener>,
    pool: Mutex<Pool>,
    one_is_free: Condvar,
}

#[derive(Default)]
struct Pool {
    in_use: usize,
    idle: Vec<Connection>,
}

/// Why there is no answer.
pub enum Lost {
    /// The holder cannot be reached; what was asked for was not carried out.
    NotDone,
    /// The holder ended meanwhile. It may have been carried out.
    Unknown,
    /// The holder takes no calls of this process.
    Refused(Error),
}

impl There {
    /// Connects to whoever holds the store.
    pub fn reach(opener: &Arc<Opener>) -> Result<Self, Lost> {
        let first = Connection::open(opener)?;
        Ok(Self {
            opener: Arc::clone(opener),
            pool: Mutex::new(Pool {
                in_use: 0,
                idle: vec![first],
            }),
            one_is_free: Condvar::new(),
        })
    }

    /// Has the call carried out over there.
    pub fn call(&self, call: &Call<'_>) -> Result<Answer, Lost> {
        let mut line = serde_json::to_vec(call).map_err(|_| Lost::NotDone)?;
        line.push(b'\n');
        if line.len() > calls::BYTES_MAX {
            let text = format!(
                "Error: The call is too long for the memory store, {} of {} bytes",
                line.len(),
                calls::BYTES_MAX
            );
            return Ok(strongroom::Answer::replied(None, Reply::error(text)).into());
        }
        let place = self.take_place();
        let connection = loop {
            match place.idle() {
                Some(connection) if connection.is_alive() => break connection,
                Some(_) => {}
                None => break Connection::open(&self.opener)?,
            }
        };
        let answer = connection.call(&line)?;
        place.keep(connection);
        Ok(answer)
    }

    fn take_place(&self) -> Place<'_> {
        let mut pool = self.pool();
        while pool.in_use >= CONNECTIONS_MAX {
            pool = self
                .one_is_free
                .wait(pool)
                .unwrap_or_else(PoisonError::into_inner);
        }
        pool.in_use += 1;
        Place(self)
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to use one connection, free again when this is dropped.
struct Place<'a>(&'a There);

impl Place<'_> {
    fn idle(&self) -> Option<Connection> {
        self.0.pool().idle.pop()
    }

    fn keep(&self, connection: Connection) {
        let mut pool = self.0.pool();
        if pool.idle.len() < IDLE_MAX {
            pool.idle.push(connection);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.pool().in_use -= 1;
        self.0.one_is_free.notify_one();
    }
}

/// A connection on which the holder takes calls.
struct Connection {
    stream: UnixStream,
    holder: Option<Pid>,
}

impl Connection {
    fn open(opener: &Opener) -> Result<Self, Lost> {
        let unproved = connect(opener.path()).map_err(|_| Lost::NotDone)?;
        let (stream, mut holder) = unproved
            .send(opener.builder(), calls::REQUEST)
            .map_err(Lost::Refused)?
            .map_err(|_| Lost::NotDone)?;
        let connection = Self {
            holder: socket_peercred(&stream).ok().map(|peer| peer.pid),
            stream,
        };
        let is_timed = connection.stream.set_read_timeout(Some(LOOK));
        is_timed.map_err(|_| Lost::NotDone)?;
        loop {
            let (kind, bytes) = connection.read().map_err(|_| Lost::NotDone)?;
            if !holder.admit(kind, &bytes).map_err(|_| Lost::NotDone)? {
                continue;
            }
            match (kind, bytes) {
                (Kind::Out, _) => return Ok(connection),
                (Kind::Err | Kind::Proof, _) => {}
                (Kind::Exit, code) if code == [Exit::Key as u8] => {
                    return Err(Lost::Refused(KeyError::WrongCredential.into()));
                }
                // Of another version, or at its end.
                (Kind::Exit, _) => return Err(Lost::NotDone),
            }
        }
    }

    /// Whether nothing has come since the last answer: the holder says nothing unasked, but
    /// that it ends.
    fn is_alive(&self) -> bool {
        let mut byte = [0; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(
            recv(&self.stream, &mut byte, flags),
            Err(rustix::io::Errno::AGAIN)
        )
    }

    fn call(&self, line: &[u8]) -> Result<Answer, Lost> {
        // Without its last byte a line is not carried out.
        (&self.stream).write_all(line).map_err(|_| Lost::NotDone)?;
        let mut answer = Vec::new();
        while answer.last() != Some(&b'\n') {
            match self.read().map_err(|_| Lost::Unknown)? {
                (Kind::Out, piece) => answer.extend_from_slice(&piece),
                (Kind::Err | Kind::Proof, _) => {}
                (Kind::Exit, _) => return Err(Lost::NotDone),
            }
        }
        parse(&answer).ok_or(Lost::Unknown)
    }

    fn read(&self) -> io::Result<(Kind, Vec<u8>)> {
        frame::read(&mut Watched(self))
    }
}

/// Reads for as long as the holder lives.
struct Watched<'a>(&'a Connection);

impl Read for Watched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&self.0.stream).read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let is_gone = self.0.holder.is_some_and(|holder| {
                        test_kill_process(holder) == Err(rustix::io::Errno::SRCH)
                    });
                    if is_gone {
                        return Err(ErrorKind::BrokenPipe.into());
                    }
                }
                read => return read,
            }
        }
    }
}

fn parse(line: &[u8]) -> Option<Answer> {
    let Done { result, failure } = serde_json::from_slice(line).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let content = match result.get("content")? {
        Value::String(text) => Content::Text(text.clone()),
        blocks => {
            let source = blocks.get(0)?.get("source")?;
            let media_type = match source.get("media_type")?.as_str()? {
                "image/png" => "image/png",
                "image/jpeg" => "image/jpeg",
                _ => return None,
            };
            let data = Base64::decode_vec(source.get("data")?.as_str()?).ok()?;
            Content::Image { media_type, data }
        }
    };
    Some(Answer {
        tool_use_id: result.get("tool_use_id").and_then(text),
        reply: Reply {
            content,
            is_error: result
                .get("is_error")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        },
        failure: failure.map(Failure::from),
    })
}
