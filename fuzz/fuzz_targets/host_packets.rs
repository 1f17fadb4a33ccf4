#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| skyhaul_net::fuzz::host_packets(data, skyhaul_testkit::fuzz::repair));
