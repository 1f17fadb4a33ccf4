//! Clients in processes of their own: one process may not have as many descriptors as there are connections.
//!
//! The program starts itself again with [`WORD`], and commands these processes over pipes: at `again` each connection is
//! served once more; a process ends with its input.

use crate::{bed, client};
use skyhaul_net::Namespace;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The first argument of a process of clients; the number of connections and that of the first one follow.
pub const WORD: &str = "--crowd";
/// Connections that one process holds.
const EACH: usize = 4000;

struct ClientProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl ClientProcess {
    fn number(&mut self) -> Result<usize, String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).map_err(|e| e.to_string())?;
        line.trim().parse().map_err(|_| "a process of clients has ended".into())
    }
}

/// Connections that are held.
pub struct Crowd(Vec<ClientProcess>);

impl Crowd {
    /// Opens `n` connections and has each served once; also returns how many were.
    pub fn new(ns: &Namespace, n: usize) -> Result<(Self, usize), String> {
        let mut all = Self(Vec::new());
        let mut opened = 0;
        for first in (0..n).step_by(EACH) {
            let program = std::env::current_exe().map_err(|e| e.to_string())?;
            let mut c = Command::new(program);
            c.args([WORD, &EACH.min(n - first).to_string(), &first.to_string()]);
            c.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = ns.within(|| c.spawn()).map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
            let (stdin, stdout) = (child.stdin.take(), child.stdout.take().ok_or("no pipe")?);
            all.0.push(ClientProcess { child, stdin, stdout: BufReader::new(stdout) });
            opened += all.0.last_mut().map_or(Ok(0), ClientProcess::number)?;
        }
        Ok((all, opened))
    }
    /// Has each of them served once more; returns how many were.
    pub fn again(&mut self) -> Result<usize, String> {
        let mut served = 0;
        for process in &mut self.0 {
            let stdin = process.stdin.as_mut().ok_or("it is closed")?;
            stdin.write_all(b"again\n").map_err(|e| e.to_string())?;
            served += process.number()?;
        }
        Ok(served)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for process in &mut self.0 {
            drop(process.stdin.take());
        }
        for process in &mut self.0 {
            let _ = process.child.wait();
        }
    }
}

/// What a process of clients does.
pub fn play(args: &[String]) -> std::process::ExitCode {
    let number = |at: usize| args.get(at).and_then(|n| n.parse::<usize>().ok());
    let (Some(n), Some(first)) = (number(0), number(1)) else { return 2.into() };
    let open = |i: usize| -> std::io::Result<TcpStream> {
        let mut s = client::connect(bed::at((first + i) as u32, bed::HTTP))?;
        client::fetch(&mut s, 100, false)?;
        Ok(s)
    };
    let mut all: Vec<TcpStream> = (0..n).filter_map(|i| open(i).ok()).collect();
    println!("{}", all.len());
    for _ in std::io::stdin().lines() {
        println!("{}", all.iter_mut().map(|s| client::fetch(s, 100, false)).filter(Result::is_ok).count());
    }
    0.into()
}
