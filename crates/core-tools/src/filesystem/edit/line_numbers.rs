//! Recognizes text that was copied together with line numbers.

/// Returns the first and the last number if every line of `text` begins with one, each one more than that before, as in
/// the output of `cat -n`, `grep -n` and `read_file` with `line_numbers`.
pub(super) fn numbered_lines(text: &str) -> Option<(usize, usize)> {
    let mut numbers = text.lines().map(|line| split_number(line).map(|(number, _)| number));
    let first = numbers.next()??;
    let mut last = first;
    for number in numbers {
        if number? != last.checked_add(1)? {
            return None;
        }
        last += 1;
    }
    Some((first, last))
}

/// Returns `text` without the numbers that begin its lines.
pub(super) fn without_numbers(text: &str) -> String {
    text.split_inclusive('\n').map(|line| split_number(line).map_or(line, |(_, rest)| rest)).collect()
}

/// Splits `12\ttext`, `12→text`, `12: text`, `12:text` or `12| text` after the separator.
fn split_number(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start_matches(' ');
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = line.split_at(digits);
    let number = number.parse().ok()?;
    let rest = ["\t", "→", ": ", ":", "| ", "|"].iter().find_map(|separator| rest.strip_prefix(separator))?;
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_recognized_in_every_usual_form() {
        for (text, expected) in [
            ("12\tfn main() {\n13\t}\n", Some((12, 13))),
            ("     9→a\n    10→b", Some((9, 10))),
            ("3: x = 1", Some((3, 3))),
            ("7|a\n8|b", Some((7, 8))),
            ("1\ta\n3\tb", None),
            ("fn main() {", None),
            ("1. first", None),
            ("", None),
        ] {
            assert_eq!(numbered_lines(text), expected, "{text:?}");
        }
        assert_eq!(without_numbers("12\tfn main() {\n13\t}\n"), "fn main() {\n}\n");
        assert_eq!(numbered_lines(&format!("{0}{0}\tx", usize::MAX)), None);
    }
}
