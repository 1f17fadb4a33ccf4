//! What a case asks of the endpoint under test, in words that mean the same to every target.
//!
//! | words | meaning | default |
//! |---|---|---|
//! | `control reno` | congestion control: `reno`, `cubic`, `bbr`, or one of ours by name | `reno` |
//! | `sack off`, `timestamps off`, `scaling off`, `dsack off` | options not used | on |
//! | `ecn on` | ECN is asked for and granted | off |
//! | `recovery duplicates` | losses show by duplicates; `time`: by RACK | `time` |
//! | `tail-loss-probe off` | no probe before the timeout | on |
//! | `f-rto off` | a timeout is never taken for spurious by RFC 5682 | on |
//! | `nagle on` | small segments wait | off |
//! | `idle-restart off` | the window stays after idle time (RFC 5681 §4.1) | on |
//! | `receive-buffer 20000`, `send-buffer 20000` | bytes | the target's |
//! | `mtu 1500` | longest packet of the interface, bytes | 1500 |
//! | `retries 3`, `syn-retries 2` | repetitions before a connection is given up | the target's |
//! | `user-timeout 3s` | RFC 5482 | none |
//! | `fin-timeout 2s` | a closed connection waits for so long for the peer's FIN | the target's |
//! | `mtu-probing on` | the kernel looks for black holes (RFC 4821); our endpoint always does | off |
//! | `keepalive 2s 1s 3` | idle time, interval, number | none |
//! | `backlog 4` | half-open connections before cookies | the target's |
//! | `ipv6` | the same over IPv6 | IPv4 |
//! | `profile option` | how probes are marked, for ours | option |

use super::number::{duration, whole};
use skyhaul_base::Duration;

/// What a case asks of the endpoint under test.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the language")]
pub struct Conditions {
    /// Name of the congestion control.
    pub control: String,
    /// SACK is offered and accepted.
    pub sack: bool,
    /// Timestamps are offered and accepted.
    pub timestamps: bool,
    /// Window scaling is offered and accepted.
    pub scaling: bool,
    /// Duplicates are reported.
    pub dsack: bool,
    /// ECN is asked for and granted.
    pub ecn: bool,
    /// Losses show by time (RACK), not by duplicates.
    pub by_time: bool,
    /// A tail loss probe precedes the timeout.
    pub tail_loss_probe: bool,
    /// F-RTO after a timeout.
    pub f_rto: bool,
    /// Small segments wait.
    pub nagle: bool,
    /// The window starts again after idle time (RFC 5681 §4.1).
    pub idle_restart: bool,
    /// Receive buffer, bytes.
    pub receive_buffer: Option<u64>,
    /// Send buffer, bytes.
    pub send_buffer: Option<u64>,
    /// Largest packet (MTU), bytes.
    pub mtu: u16,
    /// Repetitions of data before the connection is given up.
    pub retries: Option<u32>,
    /// Repetitions of a SYN before the connection is given up.
    pub syn_retries: Option<u32>,
    /// Time without an answer after which the connection is given up (RFC 5482).
    pub user_timeout: Option<Duration>,
    /// Keep-alive: idle time before the first question, interval of the questions, their number.
    pub keepalive: Option<(Duration, Duration, u32)>,
    /// Half-open connections before cookies.
    pub backlog: Option<u32>,
    /// A closed connection waits for so long for the peer's FIN.
    pub fin_timeout: Option<Duration>,
    /// The kernel looks for black holes (RFC 4821); our endpoint always does.
    pub mtu_probing: bool,
    /// The case runs over IPv6.
    pub v6: bool,
    /// How probes are marked: `off`, `paper`, `option`, `compact`.
    pub profile: String,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            control: "reno".into(),
            sack: true,
            timestamps: true,
            scaling: true,
            dsack: true,
            ecn: false,
            by_time: true,
            tail_loss_probe: true,
            f_rto: true,
            nagle: false,
            idle_restart: true,
            receive_buffer: None,
            send_buffer: None,
            mtu: 1500,
            retries: None,
            syn_retries: None,
            user_timeout: None,
            keepalive: None,
            backlog: None,
            fin_timeout: None,
            mtu_probing: false,
            v6: false,
            profile: "option".into(),
        }
    }
}

fn switch(word: &str) -> Result<bool, String> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("on or off, not {word:?}")),
    }
}

impl Conditions {
    /// Takes one condition in.
    ///
    /// # Errors
    /// If it is none.
    pub fn take(&mut self, text: &str) -> Result<(), String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["control", name] => self.control = (*name).into(),
            ["sack", w] => self.sack = switch(w)?,
            ["timestamps", w] => self.timestamps = switch(w)?,
            ["scaling", w] => self.scaling = switch(w)?,
            ["dsack", w] => self.dsack = switch(w)?,
            ["ecn", w] => self.ecn = switch(w)?,
            ["tail-loss-probe", w] => self.tail_loss_probe = switch(w)?,
            ["f-rto", w] => self.f_rto = switch(w)?,
            ["nagle", w] => self.nagle = switch(w)?,
            ["idle-restart", w] => self.idle_restart = switch(w)?,
            ["mtu-probing", w] => self.mtu_probing = switch(w)?,
            ["recovery", "time"] => self.by_time = true,
            ["recovery", "duplicates"] => (self.by_time, self.tail_loss_probe) = (false, false),
            ["receive-buffer", n] => self.receive_buffer = Some(whole(n)?),
            ["send-buffer", n] => self.send_buffer = Some(whole(n)?),
            ["mtu", n] => self.mtu = whole(n)?,
            ["retries", n] => self.retries = Some(whole(n)?),
            ["syn-retries", n] => self.syn_retries = Some(whole(n)?),
            ["user-timeout", t] => self.user_timeout = Some(duration(t)?),
            ["fin-timeout", t] => self.fin_timeout = Some(duration(t)?),
            ["keepalive", a, b, n] => self.keepalive = Some((duration(a)?, duration(b)?, whole(n)?)),
            ["backlog", n] => self.backlog = Some(whole(n)?),
            ["ipv6"] => self.v6 = true,
            ["profile", name @ ("off" | "paper" | "option" | "compact")] => self.profile = (*name).into(),
            _ => return Err(format!("no condition is called {text:?}: see the table in conditions.rs")),
        }
        Ok(())
    }
}
