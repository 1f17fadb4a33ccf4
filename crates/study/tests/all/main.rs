//! Studies from outside. One program for all of it: each further one compiles and links the whole crate once more.

mod batch;
mod common;
mod fit;
mod plan;
mod rows;
mod run;
mod studies;
mod tables;
mod tracker;
mod verdicts;
