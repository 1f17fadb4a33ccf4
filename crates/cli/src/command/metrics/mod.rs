//! Counters for Prometheus: what a page of them looks like, and who hands it out.

mod page;
mod server;

pub(super) use page::Page;
pub(super) use server::Metrics;
