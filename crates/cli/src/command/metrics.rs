//! An HTTP server for a page of metrics.
//!
//! HTTP has its own thread, so that a slow or stuck client delays nothing else. The owner of the counters makes a
//! page only on request.

use crate::output::note;
use crate::stop::Stop;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tiny_http::{Header, Response, Server};

/// Longest wait of a client for the owner of the counters.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A server of pages. A request is the channel for its answer.
pub(crate) struct Metrics {
    /// `None` once the thread has it.
    server: Option<Server>,
    requests: Receiver<Sender<String>>,
    sender: Sender<Sender<String>>,
}

impl Metrics {
    /// Listens at the `address` of the option `--metrics`.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Stop> {
        Self::open_for(address, |message| Stop::bad(format!("--metrics: {message}")))
    }
    /// Listens at `address`; `refuse` makes the error of a message.
    pub(crate) fn open_for(address: SocketAddr, refuse: impl FnOnce(String) -> Stop) -> Result<Self, Stop> {
        let server = Server::http(address).map_err(|e| {
            refuse(format!("cannot listen at {address}: {e}; choose another address or port"))
        })?;
        note(&format!("metrics at http://{}/metrics\n", server.server_addr()));
        let (sender, requests) = channel();
        Ok(Self { server: Some(server), requests, sender })
    }

    /// The address and port at which it listens, until it starts to serve.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref()?.server_addr().to_ip()
    }

    /// Starts to serve; `wake` is called when [`Self::answer`] has work to do.
    pub(crate) fn begin(&mut self, wake: impl Fn() + Send + 'static) {
        let (Some(server), sender) = (self.server.take(), self.sender.clone()) else { return };
        std::thread::spawn(move || {
            for request in server.incoming_requests() {
                let (answer, answered) = channel();
                if sender.send(answer).is_err() {
                    return;
                }
                wake();
                let mut response = match answered.recv_timeout(ANSWER_TIMEOUT) {
                    Ok(page) => Response::from_string(page),
                    Err(_) => Response::from_string("busy\n").with_status_code(503),
                };
                if let Ok(h) = Header::from_bytes(&b"Content-Type"[..], CONTENT_TYPE) {
                    response.add_header(h);
                }
                // A client that has gone needs no answer.
                let _ = request.respond(response);
            }
        });
    }

    /// Answers pending requests with a page.
    pub(crate) fn answer(&self, page: impl Fn() -> String) {
        while let Ok(answer) = self.requests.try_recv() {
            let _ = answer.send(page());
        }
    }
}
