//! The reaction of a program when the system has no memory for a block.

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};

static ACT: OnceLock<fn(usize)> = OnceLock::new();

/// Has `act` be called with the size of a block for which the system has no memory, before that allocation fails.
///
/// It may end the program with a message of its own, although the message may find no memory either; if it returns, the
/// allocation fails as it would have. Only the first call of this function has an effect, and none where
/// [`LargePages`](crate::LargePages) is the system's allocator.
pub fn on_refusal(act: fn(bytes: usize)) {
    let _ = ACT.set(act);
}

/// Returns `block`; if it is null, informs the program first.
#[inline]
pub(super) fn or_tell(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        tell(bytes);
    }
    block
}

thread_local! {
    /// True while this thread informs the program, whose own allocations may then fail as well.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

#[cold]
#[inline(never)]
fn tell(bytes: usize) {
    // The other threads wait here until the program has ended: their failures would end it without a message.
    static TURN: Mutex<()> = Mutex::new(());
    let Some(act) = ACT.get() else { return };
    if !IS_TELLING.replace(true) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        act(bytes);
        IS_TELLING.set(false);
    }
}
