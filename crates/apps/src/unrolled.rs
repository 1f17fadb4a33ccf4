//! Loops of which the compiler does several rounds at once, so that what one round leaves to the next need not change its
//! register. That pays where a round takes some twenty instructions.

/// Calls `each` with each element in order.
#[inline(always)]
pub(crate) fn unrolled<T>(elements: &[T], mut each: impl FnMut(&T)) {
    let fours = elements.chunks_exact(4);
    let rest = fours.remainder();
    for four in fours {
        four.iter().for_each(&mut each);
    }
    rest.iter().for_each(each);
}
