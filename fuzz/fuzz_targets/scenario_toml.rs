#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_fuzz::scenario_toml(data));
