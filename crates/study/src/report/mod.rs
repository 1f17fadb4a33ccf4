//! The report: one HTML file that opens anywhere, and a text for terminals.

mod html;
mod text;

pub use html::{html, index};
pub use text::text;
