//! Recognises the lines of panics, exceptions and stack traces of Rust, Go, Python, Java, .NET, Ruby, Node.js and PHP.

use super::head::TextHead;
use super::level::EntryLevel;

/// The names that exceptions end with.
const NAME_ENDS: &[&str] = &[
    "Error",
    "Exception",
    "Interrupt",
    "Throwable",
    "Fault",
    "Iteration",
    "Exit",
    "Expired",
    "Timeout",
    "ExceptionGroup",
    "Failure",
    "NotFound",
    "DoesNotExist",
    "Denied",
    "Panic",
    "Rejection",
];

/// Parses the line that a runtime prints when a program panics or aborts.
pub(super) fn panic(line: &[u8]) -> Option<TextHead> {
    let starts = |start: &str| line.starts_with(start.as_bytes());
    let fatal = starts("fatal error: ")
        || starts("FATAL ERROR: ")
        || starts("terminate called ")
        || starts("Segmentation fault")
        || starts("SIGSEGV: ")
        || starts("SIGABRT: ");
    let level = match () {
        () if starts("thread '") && is_rust_panic(line) || starts("panic: ") => EntryLevel::Error,
        () if fatal => EntryLevel::Fatal,
        () if is_source_line(line) => EntryLevel::Error,
        () => return None,
    };
    Some(TextHead::untimed(Some(level), 0))
}

fn is_rust_panic(line: &[u8]) -> bool {
    // A thread's name stands before the words, so they are searched, but not in the whole line.
    let window = line.get(..line.len().min(160)).unwrap_or_default();
    memchr::memmem::find(window, b" panicked at").is_some()
}

/// Returns whether the message of a panic stands on the line after `line`.
pub(super) fn announces_message(line: &[u8]) -> bool {
    line.starts_with(b"thread '") && line.trim_ascii_end().last() == Some(&b':') && is_rust_panic(line)
}

/// Returns whether `line` is only the name of a script and a line number, as Node.js prints before an uncaught error:
/// `/app/index.js:3`.
fn is_source_line(line: &[u8]) -> bool {
    const ENDS: [&[u8]; 6] = [b".js", b".mjs", b".cjs", b".ts", b".mts", b".tsx"];
    let line = line.trim_ascii_end();
    let Some(colon) = memchr::memrchr(b':', line) else { return false };
    let (file, number) = (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
    let numbered = !number.is_empty() && number.len() < 7 && number.iter().all(u8::is_ascii_digit);
    let internal = file.starts_with(b"node:internal/");
    let rooted = matches!(file, [b'/', ..] | [_, b':', b'\\', ..]) || file.starts_with(b"file://");
    numbered && (internal || rooted && !file.contains(&b' ') && ENDS.iter().any(|end| file.ends_with(end)))
}

/// Returns whether `line`, which is no head, continues the entry before it: it is indented, is part of a stack trace,
/// or closes a bracket.
pub(super) fn continues(line: &[u8]) -> bool {
    const STARTS: &[&str] = &[
        "at ",
        "> File \"",
        "Caused by",
        "Wrapped by",
        "... ",
        "--- ",
        "---> ",
        "During handling of",
        "The above exception",
        "goroutine ",
        "created by ",
        "panic(",
        "[stacktrace]",
        "[signal ",
        "stack backtrace:",
        "Stack trace:",
        "note: run with",
        "note: Some details",
        "Suppressed: ",
        "exit status ",
        "Node.js v",
        "(Use `node --trace",
        "Aborted (core dumped)",
    ];
    let numbered = line.first() == Some(&b'#') && line.get(1).is_some_and(u8::is_ascii_digit);
    line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'))
        || numbered
        || STARTS.iter().any(|start| line.starts_with(start.as_bytes()))
        || line.iter().all(|byte| b"{}[](),;^~\" \t".contains(byte))
        || is_ruby_frame(line)
}

/// Returns whether `line` is a frame of Ruby: `app/models/order.rb:12:in 'Order#total'`.
fn is_ruby_frame(line: &[u8]) -> bool {
    let window = line.get(..line.len().min(300)).unwrap_or_default();
    let Some(at) = memchr::memmem::find(window, b":in ") else { return false };
    let before = window.get(..at).unwrap_or_default();
    let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let file = before.get(..before.len() - digits).unwrap_or_default();
    matches!(window.get(at + 4), Some(b'`' | b'\''))
        && digits > 0
        && file.last() == Some(&b':')
        && is_path(file)
}

/// Returns whether `file`, which ends with a colon, is a path alone: of a logger's line the time, the level or the
/// program would stand before it.
fn is_path(file: &[u8]) -> bool {
    let rooted = matches!(file, [b'/' | b'.', ..] | [_, b':', b'\\' | b'/', ..]);
    match file.contains(&b' ') {
        true => rooted && !file.windows(2).any(|two| matches!(two, b": " | b"] ")),
        false => true,
    }
}

/// Returns whether `line` names an exception, as above or below a stack trace: `ValueError: bad`,
/// `java.lang.IllegalStateException`, `Traceback (most recent call last):`, `app.rb:3:in 'f': bad (ArgumentError)`.
pub(super) fn is_exception(line: &[u8]) -> bool {
    const STARTS: &[&str] = &[
        "Traceback (most recent",
        "Exception in thread ",
        "Exception ignored in",
        "Uncaught ",
        "Unhandled ",
        "+ Exception Group Traceback",
        "** (",
    ];
    match line.first() {
        Some(b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'/' | b'.' | b'+' | b'*') => {}
        _ => return false,
    }
    if STARTS.iter().any(|start| line.starts_with(start.as_bytes())) {
        return true;
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    let mut length = 0;
    // Ruby separates modules with two colons.
    loop {
        length += line.iter().skip(length).take(128).take_while(|byte| is_name(byte)).count();
        if line.get(length..length + 2) != Some(b"::") || length > 128 {
            break;
        }
        length += 2;
    }
    let name = line.get(..length).unwrap_or_default();
    let name = name.rsplit(|byte| matches!(byte, b'.' | b'$' | b':')).next().unwrap_or_default();
    let after = line.get(length..).unwrap_or_default();
    let ended = matches!(after.first(), None | Some(b':' | b'\r'))
        || matches!(after.get(..2), Some(b" [" | b" {"))
        // Rails: `RuntimeError (bad):`
        || after.starts_with(b" (") && matches!(after.trim_ascii_end(), [.., b')', b':'] | [.., b')']);
    ended && is_exception_name(name) || is_ruby_exception(line)
}

fn is_exception_name(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_uppercase)
        && NAME_ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// Returns whether `line` is the first of an uncaught exception in Ruby: a frame, a message, and the class in
/// parentheses.
fn is_ruby_exception(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let Some(body) = line.strip_suffix(b")") else { return false };
    let Some(open) = memchr::memrchr(b'(', body) else { return false };
    let class = body.get(open + 1..).unwrap_or_default();
    is_exception_name(class.rsplit(|byte| *byte == b':').next().unwrap_or_default()) && is_ruby_frame(line)
}

/// Returns whether `line` may be the cause below a trace whose class has an unusual name:
/// `shop.orders.OutOfStock: pen`.
pub(super) fn is_cause(line: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let length = line.iter().take(128).take_while(|byte| is_name(byte)).count();
    let name = line.get(..length).unwrap_or_default();
    let Some(dot) = memchr::memrchr(b'.', name) else { return false };
    let ended = matches!(line.get(length), None | Some(b'\r')) || line.get(length..length + 2) == Some(b": ");
    ended
        && name.first().is_some_and(u8::is_ascii_lowercase)
        && name.get(dot + 1).is_some_and(u8::is_ascii_uppercase)
}

/// Returns whether `line` is only the name of a function with its package, as Go prints frames: `main.serve`,
/// `net/http.(*conn).serve(0xc000102000)`.
pub(super) fn is_frame(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./*()-$,{}[]?".contains(byte);
    let function = line.split(|byte| *byte == b'{').next().unwrap_or_default();
    let dot = memchr::memrchr(b'.', function.strip_suffix(b"(...)").unwrap_or(function));
    // Arguments are separated by a comma and a space.
    let spaced = |index: usize| index > 0 && line.get(index - 1) == Some(&b',') && line.last() == Some(&b')');
    line.first().is_some_and(u8::is_ascii_alphabetic)
        && line.iter().enumerate().all(|(index, byte)| is_name(byte) || *byte == b' ' && spaced(index))
        && dot.is_some_and(|dot| line.get(dot + 1).is_some_and(u8::is_ascii_alphabetic))
}

/// Returns whether `line` tells why a trace came about, so that it is kept where a long trace is cut.
pub(super) fn tells_cause(line: &[u8]) -> bool {
    let content = line.trim_ascii_start();
    content.starts_with(b"Caused by")
        || content.starts_with(b"[cause]")
        || content.starts_with(b"---> ")
        || line.len() == content.len() && (is_exception(line) || is_cause(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_of_stack_traces_are_told_from_text() {
        for line in [
            "    at f (a.js:1:2)",
            "\tat a.B.c(B.java:1)",
            "Caused by: x",
            "... 12 more",
            "}",
            "  ^",
            "#1 /a.php",
            "Node.js v22.1.0",
            "app/models/order.rb:12:in 'Order#total'",
            "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]",
        ] {
            assert!(continues(line.as_bytes()), "{line}");
        }
        for line in [
            "ValueError: bad",
            "java.lang.IllegalStateException",
            "TypeError: x is not a function",
            "Traceback (most recent call last):",
            "Error [ERR_X]: y",
            "a.b.C$InnerException: z",
            "ActionController::RoutingError (No route matches [GET] \"/x\"):",
            "app.rb:3:in 'Integer#/': divided by 0 (ZeroDivisionError)",
            "subprocess.TimeoutExpired: Command 'x' timed out",
        ] {
            assert!(is_exception(line.as_bytes()), "{line}");
        }
        for line in [
            "listening",
            "error: x",
            "ERROR: x",
            "Errors: 0",
            "Error handling is on",
            "attached",
            "#tag",
            "node: x",
        ] {
            assert!(!continues(line.as_bytes()) && !is_exception(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn an_uncaught_error_of_node_begins_with_its_place() {
        for line in [
            "/app/index.js:3",
            "node:internal/process/promises:394",
            "file:///app/x.mjs:12",
            "C:\\app\\x.ts:4",
        ] {
            assert!(is_source_line(line.as_bytes()), "{line}");
        }
        for line in ["/app/index.js", "index.js:3", "/app/index.js:3:4", "http://x:80", "a b.js:3"] {
            assert!(!is_source_line(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn frames_of_go_are_told_from_words() {
        for line in [
            "main.uber",
            "runtime.main",
            "net/http.(*conn).serve(0xc000102000,0x1)",
            "net/http.(*conn).serve(0xc000102000, {0x7f1e40, 0xc0000b2060})",
            "main.main.func1",
            "main.load(...)",
        ] {
            assert!(is_frame(line.as_bytes()), "{line}");
        }
        for line in ["listening", "up.", "3.14", "see a.b now", ""] {
            assert!(!is_frame(line.as_bytes()), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "[a-zA-Z.:()'` 0-9/\\[]{0,60}") {
            for line in [&*bytes, text.as_bytes()] {
                if let Some(head) = panic(line) {
                    prop_assert!(head.message <= line.len());
                }
                continues(line);
                is_exception(line);
                is_frame(line);
                is_cause(line);
                tells_cause(line);
                announces_message(line);
            }
        }
    }
}
