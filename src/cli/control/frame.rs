//! Pieces of output on their way from the holder to the other process.

use std::io::{self, ErrorKind, Read, Write};

/// The longest piece in one frame, in bytes.
const BYTES_MAX: usize = 64 * 1_024;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The holder's answer to the proof. Comes first.
    Proof,
    /// Bytes for stdout.
    Out,
    /// Bytes for stderr.
    Err,
    /// The exit code, in one byte. Nothing follows.
    Exit,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Self::Proof => b'p',
            Self::Out => b'o',
            Self::Err => b'e',
            Self::Exit => b'x',
        }
    }

    fn of(byte: u8) -> Option<Self> {
        [Self::Proof, Self::Out, Self::Err, Self::Exit]
            .into_iter()
            .find(|kind| kind.byte() == byte)
    }
}

/// Writes the bytes in as many frames as they need.
pub fn write(to: &mut impl Write, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    for piece in bytes.chunks(BYTES_MAX) {
        let length = u32::try_from(piece.len()).map_err(|_| ErrorKind::InvalidInput)?;
        let mut frame = Vec::with_capacity(5 + piece.len());
        frame.push(kind.byte());
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(piece);
        to.write_all(&frame)?;
    }
    to.flush()
}

/// Reads one frame.
pub fn read(from: &mut impl Read) -> io::Result<(Kind, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let bytes = u32::from_be_bytes(length) as usize;
    match Kind::of(kind) {
        Some(kind) if bytes <= BYTES_MAX => {
            let mut piece = vec![0; bytes];
            from.read_exact(&mut piece)?;
            Ok((kind, piece))
        }
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_in_pieces() {
        let long = vec![7; BYTES_MAX + 1];
        let mut sent = Vec::new();
        write(&mut sent, Kind::Out, &long).unwrap();
        write(&mut sent, Kind::Err, b"").unwrap();
        write(&mut sent, Kind::Exit, &[5]).unwrap();
        let mut from = sent.as_slice();
        assert_eq!(read(&mut from).unwrap().1.len(), BYTES_MAX);
        assert_eq!(read(&mut from).unwrap(), (Kind::Out, vec![7]));
        assert_eq!(read(&mut from).unwrap(), (Kind::Exit, vec![5]));
        assert!(read(&mut from).is_err());
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        for bytes in [
            b"o\xff\xff\xff\xff".as_slice(),
            b"?\0\0\0\0",
            b"o\0\0\0\x02a",
        ] {
            assert!(read(&mut &*bytes).is_err(), "{bytes:?}");
        }
    }
}
