//! A sample.

/// Adds.
///
/// ```
/// assert_eq!(sample::add(1, 2), 3);
/// ```
pub fn add(one: i32, other: i32) -> i32 {
    one + other
}

#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(super::add(1, 2), 3);
    }

    #[test]
    fn fails() {
        println!("on standard output");
        eprintln!("on standard error");
        assert_eq!(super::add(2, 2), 5, "arithmetic");
    }

    #[test]
    #[ignore = "not today"]
    fn is_skipped() {}

    #[test]
    #[should_panic(expected = "as it should")]
    fn panics() {
        panic!("as it should");
    }

    #[test]
    fn überprüft_名前() {}
}
