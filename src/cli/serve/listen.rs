//! Where the server listens: a Unix socket for this user, or a loopback address.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpStream, UnixListener};

use super::super::failure::{Exit, Failure};
use super::stall::Stream;

/// The socket's name in the store's directory, where no other place is named.
pub const NAME: &str = "http.sock";

/// What the server listens on.
pub enum Listener {
    Unix {
        listener: UnixListener,
        /// Removes the file in the end.
        _socket: Socket,
    },
    Tcp(TcpListener, SocketAddr),
}

/// The socket's file. It goes with this.
pub struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _removed = fs::remove_file(&self.0);
    }
}

/// A loopback address. Anything else is refused, with the reason.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        "write an address and a port, such as 127.0.0.1:8750 or [::1]:8750".to_owned()
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(
        "only loopback addresses (127.0.0.1, ::1) are served: this server speaks no TLS, and tokens and memory would cross the network in plain. Put a proxy with TLS in front"
            .to_owned(),
    )
}

impl Listener {
    /// In the runtime.
    pub async fn tcp(address: SocketAddr) -> Result<Self, Failure> {
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        match bound.await {
            Ok((listener, address)) => Ok(Self::Tcp(listener, address)),
            Err(error) => Err(not_bound("the address", &error)),
        }
    }

    /// In the runtime. A socket that nobody serves any more is replaced.
    pub fn unix(path: &Path) -> Result<Self, Failure> {
        if is_served(path) {
            return Err(Failure::new(
                Exit::Other,
                "listen on the socket: another process serves it",
                "End that process, or name another place with --socket.",
            ));
        }
        let bound = (|| {
            match fs::symlink_metadata(path) {
                Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
                Ok(_) => return Err(ErrorKind::AlreadyExists.into()),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            // The process' mask has made it 0600 already.
            let listener = UnixListener::bind(path)?;
            let socket = Socket(path.to_path_buf());
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            Ok((listener, socket))
        })();
        match bound {
            Ok((listener, socket)) => Ok(Self::Unix {
                listener,
                _socket: socket,
            }),
            Err(error) => Err(not_bound("the socket", &error)),
        }
    }

    pub async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix { listener, .. } => Ok(Stream::unix(listener.accept().await?.0)),
            Self::Tcp(listener, _) => {
                let stream: TcpStream = listener.accept().await?.0;
                // Answers are small; one that cannot be set is only slower.
                let _set = stream.set_nodelay(true);
                Ok(Stream::tcp(stream))
            }
        }
    }

    /// For the log: no path.
    pub fn shown(&self) -> String {
        match self {
            Self::Unix { .. } => "unix socket".to_owned(),
            Self::Tcp(_, address) => address.to_string(),
        }
    }

    /// The names under which a client can rightly know this server, or `None` on a socket:
    /// there only who may open the file can come.
    pub fn hosts(&self, more: &[String]) -> Option<Vec<String>> {
        let Self::Tcp(_, address) = self else {
            return None;
        };
        let mut hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
        if address.port() == 80 {
            let ip = address.ip();
            hosts.push("localhost".to_owned());
            hosts.push(match ip.is_ipv6() {
                true => format!("[{ip}]"),
                false => ip.to_string(),
            });
        }
        hosts.extend(more.iter().map(|host| host.to_ascii_lowercase()));
        Some(hosts)
    }
}

fn is_served(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

fn not_bound(what: &str, error: &io::Error) -> Failure {
    let next = match error.kind() {
        ErrorKind::AlreadyExists => {
            "Something that is no socket has that name: remove it, or name another place with --socket."
        }
        ErrorKind::InvalidInput => {
            "The path is too long for a socket (107 bytes): name a shorter one with --socket."
        }
        ErrorKind::NotFound => "The socket's directory must be there.",
        ErrorKind::AddrInUse => "Another process uses it: end that one, or choose another.",
        _ => "Name another with --listen or --socket.",
    };
    Failure::new(
        Exit::Other,
        format!("listen on {what}: {}", error.kind()),
        next,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_served() {
        for text in ["127.0.0.1:0", "127.8.0.1:80", "[::1]:8750"] {
            assert!(address(text).is_ok(), "{text}");
        }
        for text in [
            "0.0.0.0:80",
            "[::]:80",
            "192.168.0.1:80",
            "10.0.0.1:80",
            "[::ffff:127.0.0.1]:80",
            "[fe80::1]:80",
            "8.8.8.8:80",
        ] {
            assert!(address(text).unwrap_err().contains("proxy"), "{text}");
        }
        for text in ["", "localhost:80", "127.0.0.1", ":80", "127.1:80", "[::1]"] {
            assert!(
                address(text).unwrap_err().contains("127.0.0.1:8750"),
                "{text}"
            );
        }
    }
}
