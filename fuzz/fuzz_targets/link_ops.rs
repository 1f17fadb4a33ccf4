#![no_main]

#[path = "../../crates/testkit/tests/link_ops/mod.rs"]
mod link_ops;

libfuzzer_sys::fuzz_target!(|data: &[u8]| link_ops::link_ops(data));
