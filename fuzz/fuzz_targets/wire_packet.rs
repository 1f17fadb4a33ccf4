#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_testkit::fuzz::wire_packet(data));
