//! The runners' own machine formats. Each parser takes lines or a document and fills a [`Found`]; none of them
//! fails, and what they do not know they leave out.

mod ctest;
mod events;
mod go;
mod junit;
mod libtest;
mod nextest;
mod tap;

pub(super) use ctest::Ctest;
pub(super) use events::Events;
pub(super) use go::Go;
pub(super) use junit::junit;
pub(super) use libtest::Libtest;
pub(super) use nextest::Nextest;
pub(super) use tap::Tap;

use super::found::Found;

/// Reads what a runner prints while it runs, line by line.
pub(super) trait Lines: Send {
    /// One line, without its end.
    fn line(&mut self, line: &str, found: &mut Found);
    /// There are no more.
    fn end(&mut self, found: &mut Found);
}

/// For a runner whose exit code is all there is.
pub(super) struct Nothing;

impl Lines for Nothing {
    fn line(&mut self, _: &str, _: &mut Found) {}
    fn end(&mut self, _: &mut Found) {}
}

/// Appends a line to a message that stays bounded.
fn append(message: &mut String, line: &str) {
    const LONGEST: usize = 64 << 10;
    if message.len() < LONGEST {
        if !message.is_empty() {
            message.push('\n');
        }
        let mut end = line.len().min(LONGEST);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        message.push_str(&line[..end]);
    }
}

/// `FILE:LINE` at the beginning of `text`.
fn place(text: &str) -> Option<(String, u64)> {
    let mut parts = text.splitn(3, ':');
    let (file, line) = (parts.next()?, parts.next()?);
    let line = line.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    (!file.is_empty()).then(|| (file.to_owned(), line))
}

#[cfg(test)]
mod tests;
