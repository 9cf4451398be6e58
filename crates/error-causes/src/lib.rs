//! The message of an error with those of all its causes.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::error::Error;

/// Returns the message of `error` and those of all its [sources](Error::source), the outermost first, separated by colons.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn an_error_is_written_with_all_that_led_to_it() {
        let inner = io::Error::other("the disk is gone");
        let boxed: Box<dyn Error + Send + Sync> = Box::new(inner);
        assert_eq!(chain(&*boxed), "the disk is gone");
        // An `io::Error` that wraps another shows the other's message and has the other's sources.
        assert_eq!(chain(&io::Error::other(boxed)), "the disk is gone");
    }
}
