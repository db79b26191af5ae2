//! Names that stand for many: `sender-*` is `sender-1`, `sender-2` and so on.

use careof_document::decode::{Field, check_name};
use careof_document::error::Problems;

/// Whether `name` stands for many.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// The `number`th name of a pattern; a name that is none stays as it is.
pub(crate) fn numbered(pattern: &str, number: usize) -> String {
    pattern.replacen('*', &number.to_string(), 1)
}

/// The node, counted from 1, that copy `copy` of `copies` has where there are `nodes` of them: each in turn as long as
/// they last, otherwise shared out evenly and in order.
pub(crate) const fn shared_out(copy: usize, copies: usize, nodes: usize) -> usize {
    if nodes >= copies { copy } else { (copy - 1) * nodes / copies + 1 }
}

/// Reads a name or a pattern.
pub(crate) fn name_or_pattern<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<&'a str> {
    let text = field.text(problems)?;
    let Err(expected) = check_name(&numbered(text, 1)) else { return Some(text) };
    let expected =
        if is_pattern(text) { "a name holds one `*`, which stands for a number" } else { expected };
    field.wrong(expected, None, problems);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_shared_out_in_order() {
        let of =
            |copies, nodes| -> Vec<_> { (1..=copies).map(|copy| shared_out(copy, copies, nodes)).collect() };
        assert_eq!(of(6, 3), [1, 1, 2, 2, 3, 3]);
        assert_eq!(of(7, 3), [1, 1, 1, 2, 2, 3, 3]);
        assert_eq!(of(3, 3), [1, 2, 3]);
        assert_eq!(of(2, 5), [1, 2]);
    }
}
