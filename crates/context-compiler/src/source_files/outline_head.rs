//! The most important lines of a long outline.

use super::task_words::identifiers;
use std::collections::HashMap;

/// The line in the place of lines that were left out of an outline.
pub(super) const GAP_MARK: &str = "⋮\n";

/// Returns the most important lines of `outline` in its order, of at most `max_tokens`, with `⋮` in each gap; `None` if
/// no line fits.
pub(super) fn outline_head(
    outline: &str,
    names: &[String],
    max_tokens: usize,
    cost: impl Fn(&str) -> usize,
) -> Option<String> {
    let lines: Vec<&str> = outline.split_inclusive('\n').collect();
    let positions: HashMap<&str, usize> =
        names.iter().enumerate().map(|(position, name)| (name.as_str(), position)).collect();
    let importance = |line: &str| {
        identifiers(line).filter_map(|word| positions.get(word).copied()).min().unwrap_or(usize::MAX)
    };
    let mut order: Vec<(usize, usize)> =
        lines.iter().enumerate().map(|(number, line)| (importance(line), number)).collect();
    order.sort_unstable();
    let mut kept = vec![false; lines.len()];
    let gap = cost(GAP_MARK);
    // And a gap at the end.
    let mut tokens = gap;
    for (_, number) in order {
        // A line may have a gap before it. One token for the place where the two meet.
        tokens += cost(lines.get(number)?) + gap + 1;
        if tokens > max_tokens {
            break;
        }
        *kept.get_mut(number)? = true;
    }
    let mut head = String::new();
    let mut in_gap = false;
    for (line, kept) in lines.iter().zip(&kept) {
        if *kept {
            head.push_str(line);
        } else if !in_gap {
            head.push_str(GAP_MARK);
        }
        in_gap = !kept;
    }
    kept.contains(&true).then_some(head)
}
