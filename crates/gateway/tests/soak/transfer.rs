//! Transfers whose content both ends know in advance, and counts of how they ended.

use crate::bed::{Bed, CLIENT, SERVER};
use sha2::{Digest, Sha256};
use skyhaul_base::Rng;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The port of the server.
pub const PORT: u16 = 7000;
/// A transfer that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum bytes per read or write.
const CHUNK: usize = 1 << 14;

pub fn server() -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 2, 0, 2]), PORT)
}

/// The end that aborts halfway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aborts {
    Nobody,
    Client,
    Server,
}

/// One transfer: a request that ends with a half-close, and an answer.
#[derive(Clone, Copy, Debug)]
pub struct TransferSpec {
    pub seed: u64,
    pub up: u32,
    pub down: u32,
    pub aborts: Aborts,
    /// Pause of the client between reads.
    pub pause: Duration,
}

impl TransferSpec {
    /// Random lengths from 0 to `longest` bytes, log-uniform; one transfer in twenty is aborted by an end.
    pub fn draw(seed: u64, longest: f64) -> Self {
        let mut rng = Rng::stream(seed, "wish");
        let mut length = || ((longest.ln() * rng.unit()).exp() - 1.0) as u32;
        let (up, down) = (length(), length());
        let aborts = match rng.below(40) {
            0 => Aborts::Client,
            1 => Aborts::Server,
            _ => Aborts::Nobody,
        };
        let pause = Duration::from_millis(if rng.below(50) == 0 { 5 } else { 0 });
        Self { seed, up, down, aborts, pause }
    }
    fn write(&self) -> [u8; 17] {
        let mut b = [0; 17];
        b[..8].copy_from_slice(&self.seed.to_be_bytes());
        b[8..12].copy_from_slice(&self.up.to_be_bytes());
        b[12..16].copy_from_slice(&self.down.to_be_bytes());
        b[16] = self.aborts as u8;
        b
    }
    fn read(b: [u8; 17]) -> Self {
        let [a, u, d] = [0, 8, 12].map(|at| &b[at..]);
        let four = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
        let aborts = [Aborts::Nobody, Aborts::Client, Aborts::Server][usize::from(b[16] % 3)];
        let seed = u64::from(four(a)) << 32 | u64::from(four(&a[4..]));
        Self { seed, up: four(u), down: four(d), aborts, pause: Duration::ZERO }
    }
}

fn bytes(seed: u64, name: &str, len: u32) -> Vec<u8> {
    let mut rng = Rng::stream(seed, name);
    let mut all: Vec<u8> = Vec::with_capacity(len as usize + 8);
    while all.len() < len as usize {
        all.extend(rng.next_u64().to_le_bytes());
    }
    all.truncate(len as usize);
    all
}

/// Counts of transfers, by how they ended. An end that does not abort sees the abort of the other one as an error, never as an end of the
/// stream.
#[derive(Debug, Default)]
pub struct Tally {
    /// Everything arrived, and is equal by SHA-256.
    pub whole: AtomicU64,
    /// An end gave up, and the other one noticed.
    pub aborted: AtomicU64,
    /// A connection broke though no end gave up.
    pub broken: AtomicU64,
    /// A stream ended in order before all of it had arrived.
    pub cut: AtomicU64,
    /// Other bytes arrived than were sent.
    pub wrong: AtomicU64,
    /// Bytes that arrived in both directions.
    pub bytes: AtomicU64,
}

impl Tally {
    pub fn of(&self, what: fn(&Self) -> &AtomicU64) -> f64 {
        what(self).load(Ordering::Relaxed) as f64
    }
    fn add(what: &AtomicU64) {
        what.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads up to `most` bytes; fewer if the stream ended in order.
fn take(s: &mut TcpStream, most: usize, pause: Duration) -> io::Result<Vec<u8>> {
    let mut all = Vec::with_capacity(most);
    let mut chunk = [0; CHUNK];
    while all.len() < most {
        let room = CHUNK.min(most - all.len());
        match s.read(&mut chunk[..room]) {
            Ok(0) => break,
            Ok(n) => all.extend(&chunk[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    Ok(all)
}

fn abort(s: TcpStream) {
    let _ = socket2::SockRef::from(&s).set_linger(Some(Duration::ZERO));
}

fn patient(s: &TcpStream) -> io::Result<()> {
    s.set_read_timeout(Some(PATIENCE))?;
    s.set_write_timeout(Some(PATIENCE))
}

/// The server, until it is dropped.
pub struct Server {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// Number of streams of clients that ended in order before all bytes had arrived.
    pub cut: Arc<AtomicU64>,
    at: SocketAddr,
}

impl Server {
    pub fn new(bed: &Bed) -> Result<Self, String> {
        let at = server();
        let listen = || {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&at.into())?;
            socket.listen(4096)?;
            Ok::<TcpListener, io::Error>(socket.into())
        };
        let listener =
            bed.spaces[SERVER].within(listen).map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        listener.set_nonblocking(true).map_err(|e| e.to_string())?;
        let (over, cut) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (done, short) = (over.clone(), cut.clone());
        let thread = std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let Ok((s, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                };
                let short = short.clone();
                let work = move || {
                    let _ = s.set_nonblocking(false);
                    if serve(s).is_ok_and(|whole| !whole) {
                        Tally::add(&short);
                    }
                };
                let _ = std::thread::Builder::new().stack_size(128 << 10).spawn(work);
            }
        });
        Ok(Self { over, thread: Some(thread), cut, at })
    }
    pub fn at(&self) -> SocketAddr {
        self.at
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves a client. Returns whether the client's stream had the length that it announced.
fn serve(mut s: TcpStream) -> io::Result<bool> {
    patient(&s)?;
    let mut head = [0; 17];
    let first = take(&mut s, 17, Duration::ZERO)?;
    if first.len() < 17 {
        return Ok(false);
    }
    head.copy_from_slice(&first);
    let spec = TransferSpec::read(head);
    let data = take(&mut s, spec.up as usize, Duration::ZERO)?;
    if data.len() < spec.up as usize {
        return Ok(false);
    }
    // The half-close follows the data.
    let mut more = [0];
    if s.read(&mut more)? != 0 {
        return Ok(false);
    }
    s.write_all(&Sha256::digest(&data))?;
    let answer = bytes(spec.seed, "down", spec.down);
    if spec.aborts == Aborts::Server {
        s.write_all(&answer[..answer.len() / 2])?;
        abort(s);
    } else {
        s.write_all(&answer)?;
    }
    Ok(true)
}

/// One transfer, and how it ended.
pub fn transfer(at: SocketAddr, spec: &TransferSpec, tally: &Tally) {
    let began = std::time::Instant::now();
    match attempt(at, spec, tally) {
        Ok(Some(what)) => Tally::add(what),
        // If the server aborts, the client may see this before it has sent everything.
        Ok(None) | Err(_) if spec.aborts != Aborts::Nobody => Tally::add(&tally.aborted),
        Ok(None) => Tally::add(&tally.broken),
        Err(e) => {
            if tally.of(|t| &t.broken) < 10.0 {
                println!("  broken after {:.1} s: {e}; {spec:?}", began.elapsed().as_secs_f64());
            }
            Tally::add(&tally.broken);
        }
    }
}

fn attempt<'a>(at: SocketAddr, spec: &TransferSpec, tally: &'a Tally) -> io::Result<Option<&'a AtomicU64>> {
    let mut s = TcpStream::connect_timeout(&at, PATIENCE)?;
    patient(&s)?;
    s.write_all(&spec.write())?;
    let data = bytes(spec.seed, "up", spec.up);
    if spec.aborts == Aborts::Client {
        s.write_all(&data[..data.len() / 2])?;
        abort(s);
        return Ok(None);
    }
    s.write_all(&data)?;
    s.shutdown(Shutdown::Write)?;
    let whole = 32 + spec.down as usize;
    let back = take(&mut s, whole + 1, spec.pause)?;
    tally.bytes.fetch_add(u64::from(spec.up) + back.len() as u64, Ordering::Relaxed);
    let answer = bytes(spec.seed, "down", spec.down);
    Ok(Some(if back.len() < whole {
        &tally.cut
    } else if back.len() == whole
        && back[..32] == Sha256::digest(&data)[..]
        && Sha256::digest(&back[32..]) == Sha256::digest(&answer)
    {
        if spec.aborts == Aborts::Server { &tally.cut } else { &tally.whole }
    } else {
        &tally.wrong
    }))
}

/// Transfers of `clients` at a time, each in a thread of its own in the clients' namespace, until `next` has no more of them.
pub fn crowd(
    bed: &Bed,
    clients: usize,
    tally: &Tally,
    next: &(dyn Fn() -> Option<TransferSpec> + Sync),
) -> Result<(), String> {
    bed.spaces[CLIENT]
        .within(|| {
            std::thread::scope(|s| {
                for _ in 0..clients {
                    let work = || {
                        while let Some(spec) = next() {
                            transfer(server(), &spec, tally);
                        }
                    };
                    std::thread::Builder::new()
                        .stack_size(256 << 10)
                        .spawn_scoped(s, work)
                        .expect("a thread");
                }
            });
        })
        .map_err(|e| e.to_string())
}
