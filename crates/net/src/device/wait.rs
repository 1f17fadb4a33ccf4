//! Waits for packets, a time, or another thread.
//!
//! A timer descriptor set to an absolute time has no slack, unlike the timeouts of `epoll` and `ppoll`, to which
//! the kernel adds up to 0.1 % (half a millisecond at 500 ms).

use crate::device::Clock;
use crate::error::NetError;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use skyhaul_base::Instant;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Latest expiry of a timer, nanoseconds: the seconds of the kernel's clocks have 32 bits on some systems.
const LATEST: u64 = i32::MAX as u64 * 1_000_000_000;
const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// Wakes a [`Wait`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    /// Wakes it now, or when it next waits.
    pub fn wake(&self) {
        // A full counter still wakes.
        let _ = self.0.write(1);
    }
}

/// Reasons why a [`Wait`] woke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// Bit *n*: the *n*-th descriptor is readable.
    pub readable: u64,
    /// Another thread called [`Waker::wake`], or a signal arrived.
    pub called: bool,
}

/// Waits for descriptors, a time, and other threads.
#[derive(Debug)]
pub struct Wait {
    epoll: Epoll,
    timer: TimerFd,
    waker: Waker,
    /// When the timer expires next. It may be earlier than needed: setting it costs more than waking once for nothing.
    set_to: Instant,
    /// The timer has expired since it was set.
    expired: bool,
}

impl Wait {
    /// Waits for these descriptors to become readable, at most 64 of them.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn on(descriptors: &[&dyn AsFd]) -> Result<Self, NetError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(fail)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(fail)?;
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(fail)?;
        for (n, fd) in descriptors.iter().enumerate() {
            epoll.add(fd.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, n as u64)).map_err(fail)?;
        }
        epoll.add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, TIMER)).map_err(fail)?;
        epoll.add(event.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, WAKER)).map_err(fail)?;
        Ok(Self { epoll, timer, waker: Waker(Arc::new(event)), set_to: Instant::MAX, expired: false })
    }

    /// Replaces the `n`-th descriptor, which has been closed, by another one.
    ///
    /// # Errors
    /// If the system has no room for it.
    pub fn replace(&mut self, n: u32, descriptor: &dyn AsFd) -> Result<(), NetError> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, n.into());
        self.epoll.add(descriptor.as_fd(), event).map_err(fail)
    }

    /// A handle with which other threads can wake it.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Waits until a descriptor is readable, another thread calls, or the time has come. It returns at once for a
    /// time in the past.
    ///
    /// # Errors
    /// If the system refuses. A signal is no error: it wakes like a call.
    pub fn until(&mut self, at: Instant) -> Result<Woken, NetError> {
        loop {
            let past = at <= Clock::now();
            if !past {
                self.set(at)?;
            }
            let mut events = [EpollEvent::empty(); 8];
            let timeout = if past { EpollTimeout::ZERO } else { EpollTimeout::NONE };
            let n = match self.epoll.wait(&mut events, timeout) {
                Ok(n) => n,
                Err(nix::Error::EINTR) => return Ok(Woken { called: true, ..Woken::default() }),
                Err(e) => return Err(fail(e)),
            };
            let mut woken = Woken::default();
            for e in events.iter().take(n) {
                match e.data() {
                    TIMER => (self.set_to, self.expired) = (Instant::MAX, true),
                    WAKER => {
                        let _ = self.waker.0.read();
                        woken.called = true;
                    }
                    fd => woken.readable |= 1 << fd,
                }
            }
            if past || woken != Woken::default() || at <= Clock::now() {
                return Ok(woken);
            }
        }
    }

    /// Sets the timer, unless it expires early enough.
    fn set(&mut self, at: Instant) -> Result<(), NetError> {
        if at < self.set_to {
            let t = expiry(at);
            self.timer.set(Expiration::OneShot(t), TimerSetTimeFlags::TFD_TIMER_ABSTIME).map_err(fail)?;
            (self.set_to, self.expired) = (at, false);
        } else if self.expired {
            // Setting it, instead of reading it, also clears its readiness.
            self.timer.unset().map_err(fail)?;
            self.expired = false;
        }
        Ok(())
    }
}

fn fail(e: nix::Error) -> NetError {
    NetError::os("wait for events", e)
}

/// The kernel's form of a time. Zero would disarm a timer; a timer that expires too early is set again.
fn expiry(at: Instant) -> TimeSpec {
    TimeSpec::from_duration(std::time::Duration::from_nanos(at.as_nanos().clamp(1, LATEST)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    #[test]
    fn a_timer_has_a_time_that_the_kernel_can_express() {
        let of = |nanos| std::time::Duration::from(expiry(Instant::from_nanos(nanos))).as_nanos();
        assert_eq!([0, 1, 7_440_000_000_001, u64::MAX - 1].map(of), [1, 1, 7_440_000_000_001, LATEST.into()]);
    }

    /// Whatever the timer was set to before, it returns when it has to, and not earlier.
    #[test]
    fn a_time_that_moves_is_awaited() {
        let mut wait = Wait::on(&[]).expect("descriptors");
        let after = |ms| Clock::now() + Duration::from_millis(ms);
        // A wait that a call ends leaves its timer set.
        for (before, then) in [(60_000, 20), (10, 40), (1, 0), (5, 1), (1, 30)] {
            wait.waker().wake();
            let woken = wait.until(after(before)).expect("waits");
            assert!(woken.called);
            let at = after(then);
            let woken = wait.until(at).expect("waits");
            assert_eq!(woken, Woken::default());
            assert!(Clock::now() >= at);
        }
        // A timer that has expired does not end the next wait.
        wait.until(after(1)).expect("waits");
        let waker = wait.waker();
        let other = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            waker.wake();
        });
        assert!(wait.until(Instant::MAX).expect("waits").called);
        other.join().expect("wakes");
    }
}
