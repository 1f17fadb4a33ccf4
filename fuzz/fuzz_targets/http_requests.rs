#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_net::fuzz::http_requests(data));
