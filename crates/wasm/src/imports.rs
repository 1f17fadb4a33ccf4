//! The functions of the host that the module calls; it calls them only for controls that the host writes.
#![expect(unsafe_code, reason = "a function of the host can only be called so; nothing else here is unsafe")]

#[link(wasm_import_module = "skyhaul")]
unsafe extern "C" {
    /// Handles the message of `length` bytes at this address, and returns the length of the answer.
    #[link_name = "ask"]
    fn host_ask(message: *const u8, length: usize) -> usize;
    /// Writes the last answer to this address.
    #[link_name = "answer"]
    fn host_answer(to: *mut u8);
}

/// Sends a message to the host and returns its answer.
pub(crate) fn ask(message: &str) -> String {
    // SAFETY: the host reads `length` bytes at the address, all within the message, and keeps no reference to them.
    let length = unsafe { host_ask(message.as_ptr(), message.len()) };
    let mut answer = vec![0; length];
    // SAFETY: the host writes as many bytes as it has announced, and the vector has this length.
    unsafe { host_answer(answer.as_mut_ptr()) };
    String::from_utf8_lossy(&answer).into_owned()
}
