//! A small HTTP/1.1 server, so that curl and browsers can download from our sender. `GET /N` returns N bytes; the
//! bodies of `PUT` and `POST` are counted and acknowledged. A library parses the grammar; request bodies need a
//! length.

use super::serve::{Talk, Talker};
use crate::host::{ConnId, Host};
use skyhaul_base::Instant;

/// Maximum length of a request head, bytes.
const LONGEST_HEAD: usize = 8192;
/// Maximum size of a requested body: 1 TB.
const MOST: u64 = 1_000_000_000_000;

/// One client.
#[derive(Debug)]
pub struct Http {
    head: Vec<u8>,
    state: State,
}

/// Period of the letters in bodies.
const PERIOD: u64 = 26;
/// Content of bodies: the alphabet, repeated. All clients share it.
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
    /// Bytes of the request's body still to come, and its total length.
    Body(u64, u64),
    /// A body is expected, and its sender waits for `100 Continue` (RFC 9110 §10.1.1): what is left to write of
    /// that, and the length of the body.
    Continue(Vec<u8>, u64),
    /// Bytes of the response to write: its head, then a range of the body.
    Answer {
        head: Vec<u8>,
        from: u64,
        to: u64,
        close: bool,
    },
    Done,
}

impl Default for Http {
    fn default() -> Self {
        Self { head: Vec::new(), state: State::Head }
    }
}

fn answer(status: &str, text: &str, close: bool) -> State {
    let connection = if close { "close" } else { "keep-alive" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n{text}",
        text.len()
    );
    State::Answer { head: head.into_bytes(), from: 0, to: 0, close }
}

/// A response with `size` bytes, or a part of them.
fn bytes(size: u64, range: Option<Range>, close: bool) -> State {
    let connection = if close { "close" } else { "keep-alive" };
    let (status, from, to, place) = match range {
        None => ("200 OK", 0, size, String::new()),
        Some(Range::Part(from, to)) => {
            ("206 Partial Content", from, to, format!("Content-Range: bytes {from}-{}/{size}\r\n", to - 1))
        }
        Some(Range::Nothing) => {
            ("416 Range Not Satisfiable", 0, 0, format!("Content-Range: bytes */{size}\r\n"))
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\
         Accept-Ranges: bytes\r\n{place}Connection: {connection}\r\n\r\n",
        to - from
    );
    State::Answer { head: head.into_bytes(), from, to, close }
}

/// The part of the body that a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum Range {
    /// From one offset up to another (exclusive).
    Part(u64, u64),
    /// A range that does not exist.
    Nothing,
}

/// Parses a single byte range (RFC 9110 §14.1.2); `None`, which means everything, for any other form.
fn range(text: &str, size: u64) -> Option<Range> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = match (first.trim(), last.trim()) {
        ("", suffix) => (size.saturating_sub(suffix.parse().ok()?), size),
        (first, "") => (first.parse().ok()?, size),
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            if last < first {
                return None;
            }
            (first, size.min(last.saturating_add(1)))
        }
    };
    Some(if from < to { Range::Part(from, to) } else { Range::Nothing })
}

fn refuse(status: &str) -> State {
    answer(status, &format!("{status}\n"), true)
}

impl Http {
    /// How to respond to the head of a request, and its length; `None` if it is not complete.
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
            (Some("GET"), Some(n)) if n <= MOST => bytes(n, header("range").and_then(|r| range(r, n)), close),
            (Some("HEAD"), Some(n)) if n <= MOST => match bytes(n, None, close) {
                State::Answer { head, close, .. } => State::Answer { head, from: 0, to: 0, close },
                other => other,
            },
            (Some("PUT" | "POST"), _) => match header("content-length").map(str::parse::<u64>) {
                Some(Ok(len)) if header("expect").is_some_and(|e| e.eq_ignore_ascii_case("100-continue")) => {
                    State::Continue(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), len)
                }
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
                        self.state = answer("200 OK", &text, false);
                    } else if n == 0 {
                        let ended = host.conn(id).is_none_or(|c| c.at_end() || c.is_over());
                        return if ended { Talk::Abort } else { Talk::Until(Instant::MAX) };
                    }
                }
                State::Continue(head, len) => {
                    let n = host.write(now, id, head);
                    head.drain(..n);
                    if !head.is_empty() {
                        return Talk::Until(Instant::MAX);
                    }
                    self.state = State::Body(*len, *len);
                }
                State::Answer { head, from, to, close } => {
                    let n = host.write(now, id, head);
                    head.drain(..n);
                    if !head.is_empty() {
                        return Talk::Until(Instant::MAX);
                    }
                    if from < to {
                        // The byte at each offset is the same whatever the range.
                        let at = (*from % PERIOD) as usize;
                        let most = (*to - *from).min((CHUNK.len() - at) as u64) as usize;
                        let n = host.write(now, id, &CHUNK[at..at + most]);
                        *from += n as u64;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_standard() {
        for (text, found) in [
            ("bytes=0-499", Some(Range::Part(0, 500))),
            ("bytes=500-", Some(Range::Part(500, 1000))),
            ("bytes=-500", Some(Range::Part(500, 1000))),
            ("bytes=-5000", Some(Range::Part(0, 1000))),
            ("bytes=999-5000", Some(Range::Part(999, 1000))),
            ("bytes=1000-", Some(Range::Nothing)),
            ("bytes=-0", Some(Range::Nothing)),
            ("bytes=5-4", None),
            ("bytes=0-1,4-5", None),
            ("lines=0-1", None),
            ("bytes=x-y", None),
        ] {
            assert_eq!(range(text, 1000), found, "{text}");
        }
    }

    /// Talks to a server over a connection without a network in between; returns what it says.
    fn ask(request: &[u8]) -> String {
        use super::super::serve::Serve;
        use crate::host::{App, Endpoint, HostConfig, Secret};
        use skyhaul_base::Duration;
        let end = |n, port| std::net::SocketAddr::from(([10, 84, 0, n], port));
        let host = |n: u8| Host::new(HostConfig::new(vec![end(n, 0).ip()], Secret::fixed([n; 16])));
        let (mut client, mut server, mut now) = (host(1), host(2), Instant::ZERO + Duration::from_secs(1));
        let endpoint = Endpoint::host(skyhaul_cc::Config::by_name("cubic").unwrap());
        server.listen(80, endpoint.clone()).unwrap();
        let id = client.connect(now, end(1, 0), end(2, 80), &endpoint).unwrap();
        let mut app = Serve::new(|_| Http::default(), Duration::from_secs(1), None);
        let (mut up, mut down, mut said, mut left) = (vec![], vec![], vec![], request);
        for _ in 0..200 {
            now += Duration::from_millis(1);
            let n = client.write(now, id, left);
            left = &left[n..];
            let mut room = [0; 4096];
            let n = client.read(now, id, &mut room);
            said.extend_from_slice(&room[..n]);
            client.flush(now, &mut |p: &[u8]| up.push(p.to_vec()));
            up.drain(..).for_each(|p: Vec<u8>| server.arrive(now, &p, &mut |p: &[u8]| down.push(p.to_vec())));
            let _ = app.turn(now, &mut server);
            server.handle_timeout(now, &mut |p: &[u8]| down.push(p.to_vec()));
            server.flush(now, &mut |p: &[u8]| down.push(p.to_vec()));
            down.drain(..).for_each(|p: Vec<u8>| client.arrive(now, &p, &mut |p: &[u8]| up.push(p.to_vec())));
            client.handle_timeout(now, &mut |p: &[u8]| up.push(p.to_vec()));
        }
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn parts_of_a_body_are_parts_of_the_whole() {
        let body = |text: &str| text.split_once("\r\n\r\n").unwrap().1.to_owned();
        let whole = body(&ask(b"GET /100 HTTP/1.1\r\n\r\n"));
        assert_eq!(whole.len(), 100);
        let part = ask(b"GET /100 HTTP/1.1\r\nRange: bytes=30-59\r\n\r\n");
        assert!(
            part.starts_with("HTTP/1.1 206 ") && part.contains("Content-Range: bytes 30-59/100\r\n"),
            "{part}"
        );
        assert_eq!(body(&part), whole[30..60]);
        let beyond = ask(b"GET /100 HTTP/1.1\r\nRange: bytes=100-\r\n\r\n");
        assert!(beyond.starts_with("HTTP/1.1 416 ") && beyond.contains("bytes */100\r\n"), "{beyond}");
    }

    #[test]
    fn whoever_waits_for_it_is_told_to_go_on() {
        let said = ask(b"PUT /x HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
        assert!(said.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{said}");
        assert!(said.ends_with("5 bytes received\n"), "{said}");
    }
}
