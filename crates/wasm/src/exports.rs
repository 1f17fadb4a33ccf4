//! The functions that a host calls. The module has one thread and handles one request at a time.
#![expect(
    unsafe_code,
    reason = "a name that a host can call has to be exported; nothing else here is unsafe"
)]
#![expect(unreachable_pub, reason = "the host reaches them by name")]

use std::cell::RefCell;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the answer to the input, and returns its length.
fn reply(answer: fn(&[u8]) -> String) -> usize {
    let answer = answer(&INPUT.take());
    let length = answer.len();
    OUTPUT.set(answer);
    length
}

/// Allocates room for a request of `length` bytes and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn skyhaul_input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; length];
        input.as_mut_ptr()
    })
}

/// Answers the request and returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn skyhaul_call() -> usize {
    reply(crate::answer)
}

/// Answers a question of the host while it handles a message of a control, and returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn skyhaul_question() -> usize {
    reply(crate::question)
}

/// The address of the answer, valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn skyhaul_output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}
