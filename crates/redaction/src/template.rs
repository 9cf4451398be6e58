//! Texts in the place of a value that is put in later: no secrets, whatever the name beside them.

/// Returns true if this stands for a value that is put in later: `$NAME`, `${{ … }}`, `%s`, `***`.
pub(crate) fn is_template(value: &[u8]) -> bool {
    match value {
        [] | [b'$' | b'{' | b'<' | b'[', ..] | [b'%', b's' | b'(' | b'{', ..] => true,
        [first, rest @ ..] => {
            matches!(first, b'*' | b'.' | b'x' | b'X') && rest.iter().all(|byte| byte == first)
        }
    }
}
