#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_testkit::fuzz::repair_headers(data));
