//! A small HTTP/1.1 server, so that curl and browsers can download from our sender. `GET /N` returns N bytes; the
//! bodies of `PUT` and `POST` are counted and acknowledged. Request bodies need a length.
//!
//! A client that does nothing loses its connection: one that sends no request, does not complete the head of one in
//! time, or hardly moves data.

mod request;

use super::serve::{ConnectionHandler, NextStep};
use super::standstill::Standstill;
use crate::host::{Conn, ConnId, Host};
use request::{Range, Request, RequestTarget};
use skyhaul_base::{Duration, Instant};

/// How long a connection may wait for a request, and how long the head of one may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that bodies and responses have to move within the server's time limit: a client that reads one byte a minute
/// would otherwise hold a connection for ever.
const LEAST: u64 = 1024;

/// One client.
#[derive(Debug)]
pub struct Http {
    head: Vec<u8>,
    state: State,
    /// How long a body or a response may move less than [`LEAST`] bytes; zero means without limit.
    idle: Duration,
    stage: Stage,
}

/// Period of the letters in bodies.
const PERIOD: u64 = 26;
/// Content of bodies: the alphabet, repeated. All clients share it.
#[expect(clippy::indexing_slicing, reason = "made before the program runs")]
static CHUNK: [u8; 1 << 16] = {
    let mut chunk = [0; 1 << 16];
    let mut i = 0;
    while i < chunk.len() {
        chunk[i] = b'a' + (i % PERIOD as usize) as u8;
        i += 1;
    }
    chunk
};

#[derive(Debug, PartialEq, Eq)]
enum State {
    Head,
    /// The unwritten rest of `100 Continue`, for which the client waits before it sends the body.
    Continue(&'static [u8], Request),
    /// Bytes of the request's body still to come.
    Body(u64, Request),
    Answer(Answer),
    Done,
}

/// Bytes of the response to write: its head, then a range of the body.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    head: Vec<u8>,
    from: u64,
    to: u64,
    close: bool,
}

/// What the connection waits for, which has a time limit.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Not determined yet.
    New,
    /// The first byte of a request, until this time.
    Request(Instant),
    /// The rest of its head, until this time.
    Head(Instant),
    /// Data of a body, or acknowledgements of a response.
    Data(Standstill),
}

impl Default for Http {
    /// Gives up a body or a response that stands still for five minutes.
    fn default() -> Self {
        Self::new(Duration::from_secs(300))
    }
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// `keep-alive` or `close`.
fn connection(close: bool) -> &'static str {
    if close { "close" } else { "keep-alive" }
}

/// A response with a text, which is left out in reply to HEAD.
fn answer(status: &str, text: &str, close: bool, head_only: bool) -> Answer {
    // RFC 9110 §15.5.6.
    let allow = if status == request::NOT_ALLOWED { "Allow: GET, HEAD, POST, PUT\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\n{allow}Content-Type: text/plain\r\nContent-Length: {}\r\nConnection: {}\r\n\r\n{}",
        text.len(),
        connection(close),
        if head_only { "" } else { text },
    );
    Answer { head: head.into_bytes(), from: 0, to: 0, close }
}

/// A response with `size` bytes, or a part of them.
fn bytes(size: u64, range: Option<Range>, close: bool, head_only: bool) -> Answer {
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
         Accept-Ranges: bytes\r\n{place}Connection: {}\r\n\r\n",
        to - from,
        connection(close),
    );
    Answer { head: head.into_bytes(), from, to: if head_only { from } else { to }, close }
}

/// A response after which the connection ends.
fn refuse(status: &str) -> State {
    State::Answer(answer(status, &format!("{status}\n"), true, false))
}

/// The response to a request whose body has arrived.
fn respond(r: &Request) -> State {
    State::Answer(match r.wanted {
        RequestTarget::Bytes(size, range) => bytes(size, range, r.close, r.head_only),
        RequestTarget::Body => answer("200 OK", &format!("{} bytes received\n", r.body), r.close, false),
        RequestTarget::Nothing => {
            answer("404 Not Found", "ask for /BYTES, such as /1000000\n", r.close, r.head_only)
        }
    })
}

impl Http {
    /// A server that gives up a body or a response that stands still for `idle`; zero means never.
    #[must_use]
    pub fn new(idle: Duration) -> Self {
        Self { head: Vec::new(), state: State::Head, idle, stage: Stage::New }
    }

    /// Determines what the connection waits for, and returns until when it may; `Err` if it has waited too long.
    fn wait(&mut self, now: Instant, c: &Conn) -> Result<Instant, NextStep> {
        let waits = self.state == State::Head;
        if waits && self.head.is_empty() && c.tcp().unacked() == 0 {
            let Stage::Request(until) = self.stage else {
                self.stage = Stage::Request(now + PATIENCE);
                return Ok(now + PATIENCE);
            };
            return if now < until { Ok(until) } else { Err(NextStep::Close) };
        }
        if waits && !self.head.is_empty() {
            let Stage::Head(until) = self.stage else {
                self.stage = Stage::Head(now + PATIENCE);
                return Ok(now + PATIENCE);
            };
            if now < until {
                return Ok(until);
            }
            self.state = refuse("408 Request Timeout");
            // The response goes out at once.
            return Ok(now);
        }
        if self.idle.is_zero() {
            return Ok(Instant::MAX);
        }
        if !matches!(self.stage, Stage::Data(_)) {
            self.stage = Stage::Data(Standstill::new(now, c, LEAST));
        }
        let Stage::Data(still) = &mut self.stage else { return Ok(Instant::MAX) };
        if still.is_over(now, c, self.idle) { Err(NextStep::Abort) } else { Ok(still.next(now, self.idle)) }
    }

    /// Reads, processes and writes as far as possible. `None` means that it waits for the connection.
    fn step(&mut self, now: Instant, host: &mut Host, id: ConnId) -> Option<NextStep> {
        loop {
            match &mut self.state {
                State::Head => {
                    match request::read(&self.head) {
                        Ok(Some((n, r))) => {
                            self.head.drain(..n);
                            // Each request has its own time.
                            self.stage = Stage::New;
                            self.state = if r.expects_continue && r.body > 0 {
                                State::Continue(CONTINUE, r)
                            } else {
                                State::Body(r.body, r)
                            };
                            continue;
                        }
                        Ok(None) => {}
                        Err(status) => {
                            self.state = refuse(status);
                            continue;
                        }
                    }
                    let mut buf = [0; 4096];
                    let n = host.read(now, id, &mut buf);
                    self.head.extend(buf.iter().take(n));
                    if n == 0 {
                        let ended = host.conn(id).is_none_or(|c| c.at_end() || c.is_over());
                        return ended.then_some(NextStep::Close);
                    }
                }
                State::Body(left, r) => {
                    let buffered = (self.head.len() as u64).min(*left);
                    self.head.drain(..buffered as usize);
                    *left -= buffered;
                    let mut buf = vec![0; (*left).min(1 << 16) as usize];
                    let n = host.read(now, id, &mut buf);
                    *left -= n as u64;
                    if *left == 0 {
                        self.state = respond(r);
                    } else if n == 0 {
                        let ended = host.conn(id).is_none_or(|c| c.at_end() || c.is_over());
                        return ended.then_some(NextStep::Abort);
                    }
                }
                State::Continue(words, _) => {
                    let n = host.write(now, id, words);
                    *words = words.get(n..).unwrap_or_default();
                    if !words.is_empty() {
                        return None;
                    }
                    let State::Continue(_, r) = std::mem::replace(&mut self.state, State::Head) else {
                        return None;
                    };
                    self.state = State::Body(r.body, r);
                }
                State::Answer(Answer { head, from, to, close }) => {
                    let n = host.write(now, id, head);
                    head.drain(..n);
                    if !head.is_empty() {
                        return None;
                    }
                    if from < to {
                        // The byte at each offset is the same whatever the range.
                        let at = (*from % PERIOD) as usize;
                        let chunk = CHUNK.get(at..).unwrap_or_default();
                        let most = usize::try_from(*to - *from).unwrap_or(usize::MAX);
                        let n = host.write(now, id, chunk.get(..most).unwrap_or(chunk));
                        *from += n as u64;
                        if n == 0 {
                            let over = host.conn(id).is_none_or(|c| c.is_over());
                            return over.then_some(NextStep::Close);
                        }
                    } else {
                        self.state = if *close { State::Done } else { State::Head };
                    }
                }
                State::Done => return Some(NextStep::Close),
            }
        }
    }
}

impl ConnectionHandler for Http {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> NextStep {
        if let Some(end) = self.step(now, host, id) {
            return end;
        }
        let Some(c) = host.conn(id) else { return NextStep::Close };
        match self.wait(now, c) {
            Ok(at) => NextStep::Until(at),
            Err(end) => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Talks to a server over a connection without a network in between; returns what it says.
    fn ask(request: &[u8]) -> String {
        use crate::app::Serve;
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
        let whole = body(&ask(b"GET /100 HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(whole.len(), 100);
        let part = ask(b"GET /100 HTTP/1.1\r\nHost: a\r\nRange: bytes=30-59\r\n\r\n");
        assert!(
            part.starts_with("HTTP/1.1 206 ") && part.contains("Content-Range: bytes 30-59/100\r\n"),
            "{part}"
        );
        assert_eq!(body(&part), whole[30..60]);
        let beyond = ask(b"GET /100 HTTP/1.1\r\nHost: a\r\nRange: bytes=100-\r\n\r\n");
        assert!(beyond.starts_with("HTTP/1.1 416 ") && beyond.contains("bytes */100\r\n"), "{beyond}");
    }

    #[test]
    fn a_client_that_waits_for_100_continue_gets_it() {
        let said =
            ask(b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
        assert!(said.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{said}");
        assert!(said.ends_with("5 bytes received\n"), "{said}");
    }

    #[test]
    fn what_follows_a_body_is_the_next_request() {
        // The body of a GET is not a request.
        let inner = "GET /9 HTTP/1.1\r\nHost: a\r\n\r\n";
        let said =
            ask(format!("GET /3 HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{inner}", inner.len())
                .as_bytes());
        assert_eq!(said.matches("HTTP/1.1 200").count(), 1, "{said}");
        assert!(said.ends_with("\r\n\r\nabc"), "{said}");
        // A connection outlasts a response 404, and ends after a refusal, whatever follows.
        let said =
            ask(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\nHEAD /x HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(said.matches("HTTP/1.1 404").count() == 2 && said.ends_with("abc"), "{said}");
        let said = ask(
            b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
              GET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
        );
        assert!(said.starts_with("HTTP/1.1 400") && said.matches("HTTP/1.1").count() == 1, "{said}");
        let said = ask(b"PUT /x HTTP/1.1\r\nHost: a\r\nConnection: foo, close\r\nContent-Length: 1\r\n\r\nx\
              GET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(said.contains("Connection: close") && said.matches("HTTP/1.1").count() == 1, "{said}");
    }

    #[test]
    fn a_refused_method_is_told_which_ones_are_allowed() {
        let said = ask(b"DELETE /3 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(
            said.starts_with("HTTP/1.1 405 ") && said.contains("\r\nAllow: GET, HEAD, POST, PUT\r\n"),
            "{said}"
        );
    }
}
