#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_gateway::fuzz::repair_packets(data));
