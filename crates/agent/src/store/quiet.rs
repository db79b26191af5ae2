//! Panics that are expected, and caught, are reported to nobody: their message and backtrace would be read as a crash.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// Whether what happens in this thread is caught and told by whoever called.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

static INSTALL: Once = Once::new();

/// Does `work`, whose panics are caught in it and reported by its caller. Other threads report theirs as ever.
pub(super) fn without_report<T>(work: impl FnOnce() -> T) -> T {
    INSTALL.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            // A thread that is ending has no such variable any more, and nobody who catches.
            if !IS_CAUGHT.try_with(Cell::get).unwrap_or(false) {
                usual(about);
            }
        }));
    });
    let before = IS_CAUGHT.replace(true);
    let _restore = Restore(before);
    work()
}

/// Also where `work` panics after all.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        IS_CAUGHT.set(self.0);
    }
}
