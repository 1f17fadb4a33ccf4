//! Who hands out a page of counters over HTTP.
//!
//! A thread of its own speaks HTTP, so that a client that is slow, or never goes on, keeps nobody else. Whoever has the
//! counters is asked for a page when somebody wants one, and not otherwise.

use crate::stop::Stop;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tiny_http::{Header, Response, Server};

/// How long a client waits for whoever has the counters.
const PATIENCE: Duration = Duration::from_secs(5);
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A server of pages.
pub(crate) struct Metrics {
    server: Option<Server>,
    asked: Receiver<Sender<String>>,
    ask: Sender<Sender<String>>,
}

impl Metrics {
    /// Listens at `address`.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Stop> {
        let server = Server::http(address).map_err(|e| {
            Stop::bad(format!("--metrics: cannot listen at {address}: {e}; choose another address or port"))
        })?;
        eprintln!("metrics at http://{}/metrics", server.server_addr());
        let (ask, asked) = channel();
        Ok(Self { server: Some(server), asked, ask })
    }

    /// Answers from now on; `wake` is called when [`Self::answer`] has something to do.
    pub(crate) fn begin(&mut self, wake: impl Fn() + Send + 'static) {
        let (Some(server), ask) = (self.server.take(), self.ask.clone()) else { return };
        std::thread::spawn(move || {
            for request in server.incoming_requests() {
                let (tell, told) = channel();
                if ask.send(tell).is_err() {
                    return;
                }
                wake();
                let mut response = match told.recv_timeout(PATIENCE) {
                    Ok(page) => Response::from_string(page),
                    Err(_) => Response::from_string("busy\n").with_status_code(503),
                };
                if let Ok(h) = Header::from_bytes(&b"Content-Type"[..], KIND) {
                    response.add_header(h);
                }
                // Who has gone need not be answered.
                let _ = request.respond(response);
            }
        });
    }

    /// Gives a page to whoever has asked.
    pub(crate) fn answer(&self, page: impl Fn() -> String) {
        while let Ok(tell) = self.asked.try_recv() {
            let _ = tell.send(page());
        }
    }
}
