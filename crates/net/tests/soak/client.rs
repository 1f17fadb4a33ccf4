//! Clients over the kernel's TCP: they ask for a number of letters and check each of them.

use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait of a client for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Letters after which bodies repeat themselves.
const PERIOD: usize = 26;

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// A connection that answers or fails within a minute.
pub fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let s = TcpStream::connect_timeout(&to, PATIENCE)?;
    s.set_read_timeout(Some(PATIENCE))?;
    s.set_write_timeout(Some(PATIENCE))?;
    s.set_nodelay(true)?;
    Ok(s)
}
/// Makes the connection end with a reset.
pub fn reset_at_end(s: &TcpStream) {
    let _ = setsockopt(s, sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 });
}
/// Asks for `n` letters.
pub fn ask(s: &mut TcpStream, n: usize, close: bool) -> io::Result<()> {
    let end = if close { "Connection: close\r\n" } else { "" };
    s.write_all(format!("GET /{n} HTTP/1.1\r\nHost: a\r\n{end}\r\n").as_bytes())
}

/// What is left of an answer.
pub struct Answer {
    head: Vec<u8>,
    begun: bool,
    /// Letters that have come.
    pub got: usize,
    pub wanted: usize,
}

impl Answer {
    pub fn to(wanted: usize) -> Self {
        Self { head: Vec::new(), begun: false, got: 0, wanted }
    }
    pub fn is_whole(&self) -> bool {
        self.begun && self.got == self.wanted
    }
    /// Takes data that has arrived; each letter must be that of its place.
    pub fn take(&mut self, data: &[u8]) -> io::Result<()> {
        if !self.begun {
            self.head.extend_from_slice(data);
            let Some(end) = self.head.windows(4).position(|w| w == b"\r\n\r\n") else {
                return if self.head.len() < 4096 { Ok(()) } else { Err(wrong("no end of the head")) };
            };
            if !self.head.starts_with(b"HTTP/1.1 200 ") {
                return Err(wrong("not 200"));
            }
            self.begun = true;
            let rest = self.head.split_off(end + 4);
            return self.letters(&rest);
        }
        self.letters(data)
    }
    fn letters(&mut self, data: &[u8]) -> io::Result<()> {
        let place = self.got;
        if !data.iter().enumerate().all(|(i, b)| *b == b'a' + ((place + i) % PERIOD) as u8) {
            return Err(wrong("another letter"));
        }
        self.got += data.len();
        if self.got > self.wanted { Err(wrong("more than was asked for")) } else { Ok(()) }
    }
    /// Reads once; returns how many bytes, head included.
    pub fn read(&mut self, s: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
        let n = s.read(room)?;
        if n == 0 && !self.is_whole() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.take(&room[..n])?;
        Ok(n)
    }
}

/// Asks for `n` letters and reads them all.
pub fn fetch(s: &mut TcpStream, n: usize, close: bool) -> io::Result<()> {
    ask(s, n, close)?;
    let (mut answer, mut room) = (Answer::to(n), [0; 1 << 14]);
    while !answer.is_whole() {
        answer.read(s, &mut room)?;
    }
    Ok(())
}
/// Sends `n` bytes and waits for the response.
pub fn put(s: &mut TcpStream, n: usize) -> io::Result<()> {
    s.write_all(format!("PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n\r\n").as_bytes())?;
    s.write_all(&vec![b'x'; n])?;
    let thanks = format!("\r\n\r\n{n} bytes received\n");
    let (mut got, mut room) = (Vec::new(), [0; 1024]);
    while !got.ends_with(thanks.as_bytes()) {
        match s.read(&mut room)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => got.extend_from_slice(&room[..n]),
        }
    }
    Ok(())
}
/// Reads to the end.
pub fn to_the_end(s: &mut TcpStream) -> io::Result<()> {
    let mut room = [0; 1024];
    while s.read(&mut room)? > 0 {}
    Ok(())
}
