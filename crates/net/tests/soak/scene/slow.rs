//! Slow peers: readers that ask for much and read little of it, and writers that send much to an application that reads
//! little of it. All of that waits in the memory of our host, which has a limit.

use super::{Outcome, Run};
use crate::bed::{self, Server};
use crate::client::{self, Answer};
use crate::finding::Finding;
use crate::stop;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What each asks for or sends, bytes.
const EACH: usize = 1 << 20;
/// Room of a slow client's socket, bytes: what it does not read waits with us.
const ROOM: usize = 8192;
/// What each connection may hold in each direction, whatever the limit is, bytes.
const ALWAYS: u64 = 16 << 10;
const ROUND: Duration = Duration::from_millis(100);

struct Reader {
    socket: TcpStream,
    answer: Answer,
}
struct Writer {
    socket: TcpStream,
    sent: usize,
    closed: bool,
}

pub fn play(run: &Run) -> Outcome {
    let (n, limit): (usize, u64) = run.choose((1000, 128 << 20), (60, 8 << 20));
    let slowly = run.choose(Duration::from_secs(60), Duration::from_secs(3));
    let ns = bed::space()?;
    let server = Server::start(&ns, false, |c| c.memory = limit)?;
    let over = AtomicBool::new(false);
    let (whole, others, most, taken) = std::thread::scope(|scope| -> Result<_, String> {
        // Meanwhile a client that wants to be served at once.
        let genuine = scope.spawn(|| {
            ns.within(|| {
                let (mut served, mut failed) = (0u64, 0u64);
                while !over.load(Ordering::Relaxed) {
                    let ok = client::connect(bed::at(0, bed::HTTP))
                        .and_then(|mut s| client::fetch(&mut s, 1000, true));
                    if ok.is_ok() {
                        served += 1
                    } else {
                        failed += 1
                    }
                    std::thread::sleep(ROUND);
                }
                (served, failed)
            })
        });
        let peers = ns.within(|| peers(n, slowly, &server)).map_err(|e| e.to_string())?;
        let snapshot = server.snapshot()?;
        over.store(true, Ordering::Relaxed);
        let others = genuine.join().map_err(|_| "a client failed")?.map_err(|e| e.to_string())?;
        let whole = peers.map_err(|e| e.to_string())?;
        // The last of the data may be on its way to the application.
        let end = Instant::now() + Duration::from_secs(20);
        while server.slowly_read.load(Ordering::Relaxed) < (n * EACH) as u64 && Instant::now() < end {
            bed::sleep(ROUND);
        }
        Ok((whole, others, snapshot.memory, server.slowly_read.load(Ordering::Relaxed)))
    })?;
    bed::sleep(Duration::from_millis(2500));
    let after = server.snapshot()?;
    server.end()?;
    let allowed = limit + 2 * n as u64 * 2 * ALWAYS;
    Ok(vec![
        Finding::recorded("slow readers, and equally many slow writers", n as f64, ""),
        Finding::recorded("limit of the host's memory", limit as f64, "bytes"),
        Finding::at_most("memory of the host, maximum", most.most as f64, allowed as f64, "bytes"),
        Finding::recorded("segments whose data was discarded", most.refused as f64, ""),
        Finding::recorded("connections that discarded data beyond a gap", most.reneged as f64, ""),
        Finding::at_least("readers that received everything", whole as f64, n as f64, ""),
        Finding::at_least("bytes read from writers", taken as f64, (n * EACH) as f64, "bytes"),
        Finding::at_least("other clients served meanwhile", others.0 as f64, 1.0, ""),
        Finding::at_most("other clients not served", others.1 as f64, 0.0, ""),
        Finding::at_most("memory after all are closed", after.memory.held as f64, 1e6, "bytes"),
    ])
}

/// Reads and writes slowly, then everything; returns how many readers got the whole.
fn peers(n: usize, slowly: Duration, server: &Server) -> io::Result<usize> {
    let open = |i: usize, port| -> io::Result<TcpStream> {
        let s = client::connect(bed::at(i as u32, port))?;
        setsockopt(&s, sockopt::RcvBuf, &ROOM)?;
        setsockopt(&s, sockopt::SndBuf, &(4 * ROOM))?;
        Ok(s)
    };
    let (mut readers, mut writers) = (Vec::new(), Vec::new());
    for i in 0..n {
        let mut socket = open(i, bed::HTTP)?;
        client::ask(&mut socket, EACH, false)?;
        socket.set_nonblocking(true)?;
        readers.push(Reader { socket, answer: Answer::to(EACH) });
        let socket = open(i, bed::SLOW)?;
        socket.set_nonblocking(true)?;
        writers.push(Writer { socket, sent: 0, closed: false });
    }
    let (began, data) = (Instant::now(), vec![b'y'; 1 << 16]);
    let mut room = vec![0; 1 << 16];
    loop {
        let hurry = began.elapsed() >= slowly || stop::requested();
        if hurry {
            server.hurry.store(true, Ordering::Relaxed);
        }
        let mut moved = false;
        for r in readers.iter_mut().filter(|r| !r.answer.is_whole()) {
            let most = if hurry { room.len() } else { 2048 };
            loop {
                match r.answer.read(&mut r.socket, &mut room[..most]) {
                    Ok(_) if hurry && !r.answer.is_whole() => moved = true,
                    Ok(_) => break,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e),
                }
            }
        }
        for w in writers.iter_mut().filter(|w| !w.closed) {
            while w.sent < EACH {
                match w.socket.write(&data[..data.len().min(EACH - w.sent)]) {
                    Ok(k) => (w.sent, moved) = (w.sent + k, true),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e),
                }
            }
            if w.sent == EACH {
                w.socket.shutdown(Shutdown::Write)?;
                w.closed = true;
            }
        }
        let done = readers.iter().all(|r| r.answer.is_whole()) && writers.iter().all(|w| w.closed);
        // Nobody waits for ever: what is missing by then shows in the count.
        if done || began.elapsed() > slowly + Duration::from_secs(300) {
            return Ok(readers.iter().filter(|r| r.answer.is_whole()).count());
        }
        if !hurry {
            std::thread::sleep(ROUND);
        } else if !moved {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
