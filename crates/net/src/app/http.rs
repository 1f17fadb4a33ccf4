//! A small HTTP/1.1 server, so that curl and browsers can fetch from our sender: `GET /N` gives N bytes, `PUT` and
//! `POST` are counted and thanked for. The grammar is the library's; bodies with a length only.

use super::serve::{Talk, Talker};
use crate::host::{ConnId, Host};
use skyhaul_base::Instant;

/// Longest head of a request, bytes.
const LONGEST_HEAD: usize = 8192;
/// Most bytes that a request may ask for: 1 TB.
const MOST: u64 = 1_000_000_000_000;

/// One client.
#[derive(Debug)]
pub struct Http {
    head: Vec<u8>,
    state: State,
}

/// What bodies consist of: the alphabet, again and again. All clients share it.
static CHUNK: [u8; 1 << 16] = {
    let mut chunk = [0; 1 << 16];
    let mut i = 0;
    while i < chunk.len() {
        chunk[i] = b'a' + (i % 26) as u8;
        i += 1;
    }
    chunk
};

#[derive(Debug, PartialEq, Eq)]
enum State {
    Head,
    /// Bytes of the request's body still to come, and how many there were.
    Body(u64, u64),
    /// Bytes of the answer to be written: its head, then so many of the body.
    Answer {
        head: Vec<u8>,
        body: u64,
        close: bool,
    },
    Done,
}

impl Default for Http {
    fn default() -> Self {
        Self { head: Vec::new(), state: State::Head }
    }
}

fn answer(status: &str, body: u64, kind: &str, text: &str, close: bool) -> State {
    let connection = if close { "close" } else { "keep-alive" };
    let length = body + text.len() as u64;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n{text}"
    );
    State::Answer { head: head.into_bytes(), body, close }
}

fn refuse(status: &str) -> State {
    answer(status, 0, "text/plain", &format!("{status}\n"), true)
}

impl Http {
    /// What to do about the head of a request, and its length; `None` if it is not complete.
    fn request(&self) -> Option<(usize, State)> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut r = httparse::Request::new(&mut headers);
        let n = match r.parse(&self.head) {
            Ok(httparse::Status::Complete(n)) => n,
            Ok(httparse::Status::Partial) if self.head.len() < LONGEST_HEAD => return None,
            Ok(httparse::Status::Partial) => return Some((0, refuse("431 Request Header Fields Too Large"))),
            Err(_) => return Some((0, refuse("400 Bad Request"))),
        };
        let header = |name: &str| {
            let h = r.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
            h.and_then(|h| std::str::from_utf8(h.value).ok())
        };
        let close =
            header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close")) || r.version == Some(0);
        let size = r.path.and_then(|p| p.strip_prefix('/')).and_then(|p| p.parse::<u64>().ok());
        let state = match (r.method, size) {
            (Some("GET"), Some(n)) if n <= MOST => answer("200 OK", n, "application/octet-stream", "", close),
            (Some("HEAD"), Some(n)) if n <= MOST => {
                match answer("200 OK", n, "application/octet-stream", "", close) {
                    State::Answer { head, close, .. } => State::Answer { head, body: 0, close },
                    other => other,
                }
            }
            (Some("PUT" | "POST"), _) => match header("content-length").map(str::parse::<u64>) {
                Some(Ok(len)) => State::Body(len, len),
                _ => refuse("411 Length Required"),
            },
            (Some("GET" | "HEAD"), _) => refuse("404 Not Found: ask for /BYTES, such as /1000000"),
            _ => refuse("405 Method Not Allowed"),
        };
        Some((n, state))
    }
}

impl Talker for Http {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> Talk {
        loop {
            match &mut self.state {
                State::Head => {
                    let mut buf = [0; 4096];
                    if let Some((n, state)) = self.request() {
                        self.head.drain(..n);
                        self.state = state;
                        continue;
                    }
                    let n = host.read(now, id, &mut buf);
                    self.head.extend_from_slice(&buf[..n]);
                    if n == 0 {
                        let ended = host.conn(id).is_none_or(|c| c.at_end() || c.is_over());
                        return if ended { Talk::Close } else { Talk::Until(Instant::MAX) };
                    }
                }
                State::Body(left, len) => {
                    let buffered = (self.head.len() as u64).min(*left);
                    self.head.drain(..buffered as usize);
                    *left -= buffered;
                    let mut buf = vec![0; (*left).min(1 << 16) as usize];
                    let n = host.read(now, id, &mut buf);
                    *left -= n as u64;
                    if *left == 0 {
                        let text = format!("{len} bytes received\n");
                        self.state = answer("200 OK", 0, "text/plain", &text, false);
                    } else if n == 0 {
                        let ended = host.conn(id).is_none_or(|c| c.at_end() || c.is_over());
                        return if ended { Talk::Abort } else { Talk::Until(Instant::MAX) };
                    }
                }
                State::Answer { head, body, close } => {
                    let n = host.write(now, id, head);
                    head.drain(..n);
                    if !head.is_empty() {
                        return Talk::Until(Instant::MAX);
                    }
                    if *body > 0 {
                        let most = (*body).min(CHUNK.len() as u64) as usize;
                        let n = host.write(now, id, &CHUNK[..most]);
                        *body -= n as u64;
                        if n == 0 {
                            let over = host.conn(id).is_none_or(|c| c.is_over());
                            return if over { Talk::Close } else { Talk::Until(Instant::MAX) };
                        }
                    } else {
                        self.state = if *close { State::Done } else { State::Head };
                    }
                }
                State::Done => return Talk::Close,
            }
        }
    }
}
