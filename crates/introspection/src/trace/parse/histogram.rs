//! Parses the output of `jcmd PID GC.class_histogram`.

use super::heap_snapshot::{HeapContents, HeapGroup};

/// Parses a histogram. Other lines are skipped.
pub fn read(text: &str) -> HeapContents {
    let mut heap = HeapContents::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let numbered = words
            .next()
            .and_then(|word| word.strip_suffix(':'))
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        let (Some(count), Some(bytes), Some(class)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let (Ok(count), Ok(bytes)) = (count.parse::<u64>(), bytes.parse::<u64>()) else { continue };
        if numbered {
            heap.count = heap.count.saturating_add(count);
            heap.bytes = heap.bytes.saturating_add(bytes);
            let name =
                crate::trace::call_tree::ProfiledFunction::new(&class_name(class), None, None).function;
            heap.groups.push(HeapGroup { name, count, bytes });
        }
    }
    heap
}

/// Returns the name of a class as Java source has it: `[B` is `byte[]` (JVM specification, 4.3.2).
fn class_name(class: &str) -> String {
    let element = class.trim_start_matches('[');
    let dimensions = class.len() - element.len();
    if dimensions == 0 {
        return class.to_owned();
    }
    let name = match element {
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        "Z" => "boolean",
        other => other.strip_prefix('L').and_then(|class| class.strip_suffix(';')).unwrap_or(other),
    };
    // Real code has few dimensions; the limit bounds the name for a malformed line.
    format!("{name}{}", "[]".repeat(dimensions.min(8)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = " num     #instances         #bytes  class name (module)\n\
        -------------------------------------------------------\n\
        \x20  1:          5123         900000  [B (java.base@17.0.15)\n\
        \x20  2:           100         300000  com.example.Cart$Item\n\
        \x20  3:            10           2000  [[Ljava.lang.String; (java.base@17.0.15)\n\
        Total          5233        1202000\n";

    #[test]
    fn classes_are_named_as_java_writes_them() {
        let heap = read(TEXT);
        assert_eq!((heap.count, heap.bytes), (5233, 1_202_000));
        let names: Vec<_> = heap.groups.iter().map(|group| (group.name.as_str(), group.count)).collect();
        assert_eq!(names, [("byte[]", 5123), ("com.example.Cart$Item", 100), ("java.lang.String[][]", 10)]);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "(?s)[ 0-9:a-z\\[;L\n]{0,200}", end in 0..TEXT.len()) {
            read(&text);
            read(&TEXT[..end]);
        }
    }
}
