//! Prometheus metrics: their page and its server.

mod page;
mod server;

pub(super) use page::Page;
pub(super) use server::Metrics;
