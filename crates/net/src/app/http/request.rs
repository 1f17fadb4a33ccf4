//! Heads of requests: what is wanted, and where the body ends (RFC 9112 §6.3). A library parses the grammar.
//!
//! A request that another server could understand differently is refused, since a proxy in front of this one may be
//! such a server (RFC 9112 §11.2, "request smuggling").

/// Maximum length of a request head, bytes.
const LONGEST_HEAD: usize = 8192;
/// Maximum number of header fields of a request.
const MOST_FIELDS: usize = 64;
/// Maximum size of a requested body: 1 TB.
const LARGEST_BODY: u64 = 1_000_000_000_000;

/// A request whose head is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) wanted: RequestTarget,
    /// Length of the request's body, which any method may have.
    pub(super) body: u64,
    /// The client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    pub(super) expects_continue: bool,
    /// The connection ends after the response.
    pub(super) close: bool,
    /// The response has no body.
    pub(super) head_only: bool,
}

/// What a request is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestTarget {
    /// A response of this many bytes, or a part of it.
    Bytes(u64, Option<Range>),
    /// To receive the request's body, and to answer with its length.
    Body,
    /// A resource that does not exist here.
    Nothing,
}

/// The part of the body that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// From one offset up to another (exclusive).
    Part(u64, u64),
    /// No byte of the body.
    Nothing,
}

const BAD: &str = "400 Bad Request";
pub(super) const NOT_ALLOWED: &str = "405 Method Not Allowed";

/// Parses the head of a request, and returns its length as well; `None` if it is not complete. An error is the status
/// with which the connection ends.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(usize, Request)>, &'static str> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut r = httparse::Request::new(&mut fields);
    let n = match r.parse(bytes) {
        Ok(httparse::Status::Complete(n)) if n <= LONGEST_HEAD => n,
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST_HEAD => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err("431 Request Header Fields Too Large"),
        Err(_) => return Err(BAD),
    };
    // The library accepts a lone LF as the end of a line; other servers need not (RFC 9112 §2.2).
    let before = std::iter::once(&0).chain(bytes);
    if bytes.iter().take(n).zip(before).any(|(b, before)| *b == b'\n' && *before != b'\r') {
        return Err(BAD);
    }
    let http_1_0 = r.version == Some(0);
    let fields = Fields(r.headers);
    let hosts = fields.of("host").count();
    if hosts > 1 || hosts == 0 && !http_1_0 {
        // RFC 9112 §3.2.
        return Err(BAD);
    }
    let method = r.method.unwrap_or("");
    let sends_body = matches!(method, "PUT" | "POST");
    let body = match length(&fields, http_1_0)? {
        None if sends_body => return Err("411 Length Required"),
        length => length.unwrap_or(0),
    };
    let size = r.path.and_then(path).and_then(number).filter(|n| *n <= LARGEST_BODY);
    let wanted = match (method, size) {
        ("GET", Some(n)) => RequestTarget::Bytes(n, fields.only("range")?.and_then(|r| range(r, n))),
        ("HEAD", Some(n)) => RequestTarget::Bytes(n, None),
        ("GET" | "HEAD", None) => RequestTarget::Nothing,
        _ if sends_body => RequestTarget::Body,
        _ => return Err(NOT_ALLOWED),
    };
    let request = Request {
        wanted,
        body,
        expects_continue: !http_1_0 && fields.lists("expect", "100-continue"),
        close: http_1_0 || fields.lists("connection", "close"),
        head_only: method == "HEAD",
    };
    Ok(Some((n, request)))
}

/// The path of a request target, without its first slash, in origin form or in absolute form, which clients of a proxy send (RFC 9112
/// §3.2.1, §3.2.2). The server is the only one at its address, so the authority does not matter.
fn path(target: &str) -> Option<&str> {
    if let Some(path) = target.strip_prefix('/') {
        return Some(path);
    }
    let (scheme, rest) = target.split_once("://")?;
    let (authority, path) = rest.split_once('/')?;
    let is_valid =
        scheme.eq_ignore_ascii_case("http") && !authority.is_empty() && !authority.contains(['?', '#']);
    is_valid.then_some(path)
}

/// Length of the body, which only a single `Content-Length` of digits may state; `None` without one. An error is the status
/// of the response.
fn length(fields: &Fields<'_>, http_1_0: bool) -> Result<Option<u64>, &'static str> {
    let mut codings = fields.of("transfer-encoding").peekable();
    let stated = fields.of("content-length").count();
    if codings.peek().is_some() {
        // A length beside a transfer coding, or a coding in HTTP/1.0, is how requests are smuggled (RFC 9112 §6.1).
        if stated > 0 || http_1_0 {
            return Err(BAD);
        }
        let all: Vec<&[u8]> = codings.flat_map(|v| v.split(|b| *b == b',')).map(<[u8]>::trim_ascii).collect();
        let chunked = |c: &&[u8]| c.eq_ignore_ascii_case(b"chunked");
        let times = all.iter().filter(|c| chunked(c)).count();
        return Err(match all.last().filter(|c| chunked(c)) {
            Some(_) if times > 1 => BAD,
            // The end of a chunked body could be found, but the service needs its length in advance (RFC 9112 §6.3).
            Some(_) if all.len() == 1 => "411 Length Required",
            Some(_) => "501 Not Implemented",
            // The end of the body cannot be found.
            None => BAD,
        });
    }
    match fields.only("content-length")? {
        Some(text) => number(text).map(Some).ok_or(BAD),
        None => Ok(None),
    }
}

/// A number of digits alone: no sign, no space, no list.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Parses a single byte range (RFC 9110 §14.1.2); `None`, which means everything, for any other form.
fn range(text: &str, size: u64) -> Option<Range> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = match (first.trim(), last.trim()) {
        ("", suffix) => (size.saturating_sub(number(suffix)?), size),
        (first, "") => (number(first)?, size),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            (first, size.min(last.saturating_add(1)))
        }
    };
    Some(if from < to { Range::Part(from, to) } else { Range::Nothing })
}

/// The header fields of a request.
struct Fields<'a>(&'a [httparse::Header<'a>]);

impl Fields<'_> {
    /// Values of all fields of this name.
    fn of(&self, name: &'static str) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(move |h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value)
    }
    /// The value of a field that may occur once.
    fn only(&self, name: &'static str) -> Result<Option<&str>, &'static str> {
        let mut all = self.of(name);
        let first = all.next().map(|v| std::str::from_utf8(v).map_err(|_| BAD)).transpose()?;
        if all.next().is_some() { Err(BAD) } else { Ok(first) }
    }
    /// Whether a word is in a list, which may be spread over several fields (RFC 9110 §5.3).
    fn lists(&self, name: &'static str, word: &str) -> bool {
        let mut words = self.of(name).flat_map(|v| v.split(|b| *b == b','));
        words.any(|w| w.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
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
            ("bytes=+0-4", None),
            ("bytes=0-1,4-5", None),
            ("lines=0-1", None),
            ("bytes=x-y", None),
        ] {
            assert_eq!(range(text, 1000), found, "{text}");
        }
    }

    fn status(lines: &str) -> Result<(u64, bool), &'static str> {
        let head = format!("{lines}\r\n\r\n");
        let (n, r) = read(head.as_bytes())?.expect("complete");
        assert_eq!(n, head.len(), "{lines}");
        Ok((r.body, r.close))
    }

    #[test]
    fn a_request_that_can_be_understood_in_two_ways_is_refused() {
        let put = |fields: &str| status(&format!("PUT /x HTTP/1.1\r\nHost: a\r\n{fields}"));
        for fields in [
            "Content-Length: 3\r\nContent-Length: 4",
            "Content-Length: 3\r\nContent-Length: 3",
            "Content-Length: 3, 3",
            "Content-Length: +3",
            "Content-Length: -3",
            "Content-Length: 0x3",
            "Content-Length: 3 3",
            "Content-Length:",
            "Content-Length: 99999999999999999999",
            "Content-Length: \u{663}",
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 3",
            "Transfer-Encoding: chunked, gzip",
            "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding:",
            "Content-Length : 3",
            "Content-Length: 3\r\n Transfer-Encoding: chunked",
            "Content-Length: 3\nX: y",
            "Content-Length: 3\r\nHost: b",
        ] {
            assert_eq!(put(fields), Err("400 Bad Request"), "{fields:?}");
        }
        for (lines, is) in [
            ("PUT /x HTTP/1.1\r\nContent-Length: 3", "400 Bad Request"),
            ("GET /+3 HTTP/1.1", "400 Bad Request"),
            ("PUT /x HTTP/1.0\r\nTransfer-Encoding: chunked", "400 Bad Request"),
            ("GET /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 0", "400 Bad Request"),
            ("GET /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", "411 Length Required"),
            ("PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, Chunked", "501 Not Implemented"),
            ("PUT /x HTTP/1.1\r\nHost: a", "411 Length Required"),
            ("PATCH /x HTTP/1.1\r\nHost: a", "405 Method Not Allowed"),
        ] {
            assert_eq!(status(lines), Err(is), "{lines:?}");
        }
        assert_eq!(put("Content-Length: 3"), Ok((3, false)));
        assert_eq!(put("Content-Length:\t003 "), Ok((3, false)));
    }

    #[test]
    fn a_body_and_the_wish_to_close_belong_to_every_method() {
        assert_eq!(status("GET /5 HTTP/1.1\r\nHost: a\r\nContent-Length: 7"), Ok((7, false)));
        for close in ["close", "foo, close", "CLOSE ,foo", "x\r\nConnection: Close"] {
            assert_eq!(
                status(&format!("GET /5 HTTP/1.1\r\nHost: a\r\nConnection: {close}")),
                Ok((0, true)),
                "{close}"
            );
        }
        assert_eq!(status("GET /5 HTTP/1.1\r\nHost: a\r\nConnection: closed"), Ok((0, false)));
        assert_eq!(status("GET /5 HTTP/1.0"), Ok((0, true)));
        let (_, r) = read(b"GET /+5 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().unwrap();
        assert_eq!(r.wanted, RequestTarget::Nothing);
    }

    #[test]
    fn a_target_has_origin_form_or_absolute_form() {
        let wanted = |target: &str| {
            let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            read(head.as_bytes()).unwrap().unwrap().1.wanted
        };
        for target in ["/5", "http://a/5", "HTTP://a:80/5", "http://[fd00::1]/5"] {
            assert_eq!(wanted(target), RequestTarget::Bytes(5, None), "{target}");
        }
        for target in ["5", "a/5", "http://a", "http:///5", "http://a?/5", "https://a/5", "*"] {
            assert_eq!(wanted(target), RequestTarget::Nothing, "{target}");
        }
    }

    #[test]
    fn a_head_has_a_limit() {
        let long = format!("GET /5 HTTP/1.1\r\nHost: a\r\nX: {}", "y".repeat(LONGEST_HEAD));
        assert_eq!(status(&long), Err("431 Request Header Fields Too Large"));
        assert_eq!(read(&long.as_bytes()[..LONGEST_HEAD]), Err("431 Request Header Fields Too Large"));
        let many = "X: y\r\n".repeat(MOST_FIELDS);
        let many = format!("GET /5 HTTP/1.1\r\nHost: a\r\n{}", many.trim_end());
        assert_eq!(status(&many), Err("431 Request Header Fields Too Large"));
    }
}
