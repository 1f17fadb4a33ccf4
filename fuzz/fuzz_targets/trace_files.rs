#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_fuzz::trace_files(data));
