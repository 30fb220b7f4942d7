//! A connection that ends when the other side does not take what it is sent.
//!
//! Reading has its limits elsewhere: the head of a request, its body, and the time between
//! requests.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep, sleep};

/// How long nothing at all may be taken.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

pub struct Stream {
    socket: Socket,
    /// Runs while a write waits.
    stall: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl Stream {
    pub fn unix(stream: UnixStream) -> Self {
        Self::new(Socket::Unix(stream))
    }

    pub fn tcp(stream: TcpStream) -> Self {
        Self::new(Socket::Tcp(stream))
    }

    fn new(socket: Socket) -> Self {
        Self {
            socket,
            stall: Box::pin(sleep(STALL_TIMEOUT)),
            is_waiting: false,
        }
    }

    /// Lets a write that waits do so for the time-out only.
    fn limited<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.stall.as_mut().reset(Instant::now() + STALL_TIMEOUT);
        }
        match self.stall.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.socket {
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
        };
        self.limited(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match &mut self.socket {
            Socket::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(cx),
        };
        self.limited(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
