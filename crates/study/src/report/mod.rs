//! The reports: a self-contained HTML file, per study and over all, and a text for terminals.

mod all;
mod html;
mod leaderboard;
mod overview;
mod packed;
mod parts;
mod plain;
mod requirements;
mod text;

pub use all::all;
pub use html::{html, index};
pub use leaderboard::leaderboard;
pub use plain::plain;
pub use requirements::evaluation;
pub use text::{counts, text};
