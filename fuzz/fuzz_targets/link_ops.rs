#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_testkit::fuzz::link_ops(data));
