//! A panic becomes the error of the run it ended.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// `Some` while this thread catches panics; then what the last one said.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What `work` returns, or what it said when it panicked and where. Nothing is printed.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            let mine =
                CAUGHT.with_borrow_mut(|said| said.as_mut().map(|said| *said = panic.to_string()).is_some());
            if !mine {
                usual(panic);
            }
        }));
    });
    CAUGHT.set(Some(String::new()));
    // What the work leaves behind half done is its own and is thrown away.
    let result = catch_unwind(AssertUnwindSafe(work));
    let said = CAUGHT.take().unwrap_or_default();
    result.map_err(|_| said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_place_and_the_next_work_goes_on() {
        let said = caught(|| panic!("no such number: {}", 7)).unwrap_err();
        assert!(said.contains("no such number: 7") && said.contains("panic.rs"), "{said}");
        assert_eq!(caught(|| 3), Ok(3));
    }
}
