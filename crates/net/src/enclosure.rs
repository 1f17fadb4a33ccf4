//! Programs that end with us, however we end.
//!
//! ```text
//! we ──▶ init ──▶ program ──▶ its children ...
//!        └────── a PID namespace ──────────┘   with /proc of its own, in a network namespace of the caller's choice
//! ```
//! When the first process of a PID namespace ends, the kernel kills all others in it (pid_namespaces(7)). Our first
//! process asks to be killed when its parent dies (PR_SET_PDEATHSIG). So nothing survives us, not even daemons, and not
//! even after SIGKILL. An anonymous network namespace ends with its last process, and a TUN device with its last
//! descriptor.
//!
//! The first process must be born in the namespace, and no safe code runs between `fork` and `exec`. We therefore
//! start skyhaul again: [`start`] runs a command line given by the caller, which has to call [`init`].

use crate::device::Namespace;
use crate::error::NetError;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// Exit status of shells for a program that was not found.
const NOT_FOUND: u8 = 127;
/// Exit status of shells for a program that could not be executed.
const NOT_EXECUTABLE: u8 = 126;
/// Exit status of the first process if it failed itself.
const NO_INIT: u8 = 125;
/// Shells add this to a signal number.
const BY_SIGNAL: i32 = 128;
/// Signals passed on to the program if a process sent them to us; signals of a terminal reach the program anyway.
const PASSED_ON: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];

/// A program in an enclosure. Dropping it kills the program.
#[derive(Debug)]
pub struct Enclosed {
    init: Pid,
    waiting: Option<JoinHandle<io::Result<ExitStatus>>>,
}

/// Starts a program in an enclosure and in a network namespace, and returns once it runs. `again` is the command line that
/// restarts us so that [`init`] is called, with further arguments.
///
/// # Errors
/// If privileges are missing, or we or the program cannot be started. [`NetError::NotStarted`] has the exit status that a shell
/// would return.
///
/// # Panics
/// If `again` is empty.
pub fn start(namespace: &Namespace, again: &[OsString], program: &[OsString]) -> Result<Enclosed, NetError> {
    let (ourselves, first) = again.split_first().expect("the command line that starts us once more");
    let mut command = Command::new(ourselves);
    // The first process opens the pipe's writing end through our entry in /proc, and writes a byte as soon as the program runs.
    let (mut started, writes) = pipe2(OFlag::O_CLOEXEC)
        .map(|(a, b)| (File::from(a), b))
        .map_err(|e| NetError::os("make a pipe", e))?;
    command.args(first).args([std::process::id().to_string(), writes.as_raw_fd().to_string()]).args(program);
    let namespace = namespace.clone();
    let (sender, receiver) = mpsc::sync_channel(1);
    // The kernel treats the thread that started a process as its parent, so this thread has to stay.
    let waiting = std::thread::spawn(move || {
        let born = (|| {
            namespace.enter()?;
            let fail = |e: Errno| NetError::os("create a PID namespace", e);
            unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS).map_err(fail)?;
            command.spawn().map_err(|e| NetError::os("start skyhaul again", e))
        })();
        match born {
            Ok(mut child) => {
                let _ = sender.send(Ok(child.id()));
                let status = child.wait();
                // Closes the last writing end, so that the reader no longer waits for the byte.
                drop(writes);
                status
            }
            Err(e) => {
                let _ = sender.send(Err(e));
                Err(io::Error::other("never started"))
            }
        }
    });
    let gone = |_| NetError::os("start a program", io::Error::other("its thread is gone"));
    let id = receiver.recv().map_err(gone)??;
    let enclosed = Enclosed { init: Pid::from_raw(id as i32), waiting: Some(waiting) };
    match started.read_exact(&mut [0]) {
        Ok(()) => Ok(enclosed),
        Err(_) => Err(NetError::NotStarted { again: ourselves.clone(), status: enclosed.wait()? }),
    }
}

impl Enclosed {
    /// Passes a signal on to the program.
    pub fn signal(&self, signal: Signal) {
        if !self.is_over() {
            let _ = kill(self.init, signal);
        }
    }

    /// Asks the program to end (SIGTERM).
    pub fn end(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Kills the program and all that it started.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Whether all its processes have ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.waiting.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end of the program and of everything it started; returns the status that a shell would return.
    ///
    /// # Errors
    /// If the system does not report the status.
    pub fn wait(mut self) -> Result<u8, NetError> {
        let Some(waiting) = self.waiting.take() else { return Ok(NO_INIT) };
        let status = waiting.join().unwrap_or_else(|p| std::panic::resume_unwind(p));
        let status = status.map_err(|e| NetError::os("wait for a program", e))?;
        let by_signal = || BY_SIGNAL + status.signal().unwrap_or(0);
        Ok(u8::try_from(status.code().unwrap_or_else(by_signal)).unwrap_or(u8::MAX))
    }
}

impl Drop for Enclosed {
    fn drop(&mut self) {
        self.kill();
        if let Some(waiting) = self.waiting.take() {
            let _ = waiting.join();
        }
    }
}

/// The first process of an enclosure: starts the program, passes signals on, reaps orphans, and ends with the
/// program. `arguments` are those that [`start`] appended. Returns the exit status; errors go to standard error.
///
/// To be called before the process has any other thread.
pub fn init(arguments: &[OsString]) -> u8 {
    let [parent, tells, program, rest @ ..] = arguments else {
        eprintln!("skyhaul: this command is internal");
        return NO_INIT;
    };
    match oversee([parent, tells], program, rest) {
        Ok(status) => status,
        Err(e) => {
            eprintln!("skyhaul: {e}");
            NO_INIT
        }
    }
}

fn oversee([parent, tells]: [&OsStr; 2], program: &OsStr, rest: &[OsString]) -> Result<u8, NetError> {
    let fail = |what: &'static str| move |e: Errno| NetError::os(what, e);
    if Pid::this().as_raw() != 1 {
        let e = io::Error::other("this process is not the first of its namespace");
        return Err(NetError::os("enclose a program", e));
    }
    set_pdeathsig(Signal::SIGKILL).map_err(fail("request a signal when the parent ends"))?;
    // The parent may have died before our request. What is left of a dead process has no namespaces.
    let parent = Path::new("/proc").join(parent);
    if std::fs::read_link(parent.join("ns/net")).is_err() {
        return Ok(NO_INIT);
    }
    let started = File::options().write(true).open(parent.join("fd").join(tells));
    let mut started = started.map_err(|e| NetError::os("tell that the program runs", e))?;
    mounts()?;
    let mut signals = SigSet::from_iter(PASSED_ON);
    signals.add(Signal::SIGCHLD);
    // A child inherits blocked signals, so they are blocked only after it is started; until then, a first process
    // without a handler would lose them. The termination signal has a handler meanwhile, which is not inherited;
    // other signals may be ignored on purpose, which is inherited. A child that ends before is reaped below.
    let ended = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(Signal::SIGTERM as i32, Arc::clone(&ended))
        .map_err(|e| NetError::os("catch signals", e))?;
    let main = match Command::new(program).args(rest).spawn() {
        Ok(child) => Pid::from_raw(child.id() as i32),
        Err(e) => {
            let missing = e.kind() == io::ErrorKind::NotFound;
            let why = if missing { "no such program".to_owned() } else { crate::error::words(&e) };
            eprintln!("skyhaul: cannot start {}: {why}", Path::new(program).display());
            return Ok(if missing { NOT_FOUND } else { NOT_EXECUTABLE });
        }
    };
    let _ = started.write_all(&[1]);
    drop(started);
    signals.thread_block().map_err(fail("block signals"))?;
    let signals = SignalFd::new(&signals).map_err(fail("receive signals"))?;
    if ended.load(Ordering::SeqCst) {
        let _ = kill(main, Signal::SIGTERM);
    }
    loop {
        if let Some(status) = bury(main)? {
            return Ok(status);
        }
        let info = match signals.read_signal() {
            Ok(Some(info)) => info,
            Ok(None) | Err(Errno::EINTR) => continue,
            Err(e) => return Err(fail("receive signals")(e)),
        };
        let signal = i32::try_from(info.ssi_signo).ok().and_then(|n| Signal::try_from(n).ok());
        // Sent by a process, not by a terminal, which sends it to all of us.
        if let Some(signal) = signal.filter(|s| *s != Signal::SIGCHLD && info.ssi_code <= 0) {
            let _ = kill(main, signal);
        }
    }
}

/// Gives the enclosure its own view of processes and interfaces, invisible outside.
fn mounts() -> Result<(), NetError> {
    let none: Option<&str> = None;
    let fail = |e: Errno| NetError::os("mount /proc for a program", e);
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(fail)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none).map_err(fail)?;
    // /sys shows the interfaces of whoever mounted it. Programs run without it, too.
    let _ = mount(Some("sysfs"), "/sys", Some("sysfs"), flags | MsFlags::MS_RDONLY, none);
    Ok(())
}

/// Reaps all ended processes; returns the status of the program if it is among them.
fn bury(main: Pid) -> Result<Option<u8>, NetError> {
    loop {
        let (who, status) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(who, code)) => (who, code),
            Ok(WaitStatus::Signaled(who, signal, _)) => (who, BY_SIGNAL + signal as i32),
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(None),
            Ok(_) | Err(Errno::EINTR) => continue,
            Err(e) => return Err(NetError::os("wait for a program", e)),
        };
        if who == main {
            return Ok(Some(u8::try_from(status).unwrap_or(u8::MAX)));
        }
    }
}
