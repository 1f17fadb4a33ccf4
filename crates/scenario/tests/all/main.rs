//! Scenario files from outside. One program for all of it: each further one compiles and links the whole crate once more.

mod controls;
mod errors;
mod events;
mod fades;
mod hostile;
mod names;
mod orbits;
mod presets;
mod schema_is_current;
mod traces;
