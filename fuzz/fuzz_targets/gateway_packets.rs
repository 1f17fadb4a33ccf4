#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_gateway::fuzz::gateway_packets(data));
