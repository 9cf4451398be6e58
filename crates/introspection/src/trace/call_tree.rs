//! [`CallTree`]: the form that every profile of calls is converted to.

use std::collections::HashMap;
use std::fmt::Write as _;

/// A function, as a profiler names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ProfiledFunction {
    /// The name: one line, without control characters, of at most 200 characters.
    pub function: String,
    /// The path or URL of its source, or the library that it is in.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
}

/// The name of a function that has none.
const ANONYMOUS: &str = "(anonymous)";
/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The maximum depth of a stack; the middle of a deeper one is left out.
const MAX_DEPTH: usize = 256;
// A profile of a program that generates names must not exhaust the memory of the server.
/// The maximum number of nodes; the weight of further ones is added to their nearest ancestor in the tree.
const MAX_NODES: usize = 400_000;
/// The maximum number of lines whose weights are kept.
const MAX_LINES: usize = 200_000;

impl ProfiledFunction {
    /// Creates a frame whose name is safe in a line, a list and a picture, whatever the profiled program calls its
    /// function.
    pub fn new(function: &str, file: Option<&str>, line: Option<u32>) -> Self {
        let function = clean_name(function);
        Self {
            function: if function.is_empty() { ANONYMOUS.to_owned() } else { function },
            file: file.map(clean_name).filter(|file| !file.is_empty()),
            line: line.filter(|line| *line > 0),
        }
    }

    /// Formats function, file and line: `main (/app/main.go:9)`.
    pub fn to_text(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({file}:{line})", self.function),
            (Some(file), None) => format!("{} ({file})", self.function),
            _ => self.function.clone(),
        }
    }

    /// Returns the text for a bar of a flame graph: the name, and the location of a function without one.
    pub(super) fn label(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) if self.function == ANONYMOUS => {
                format!("{ANONYMOUS} {}:{line}", file.rsplit('/').next().unwrap_or(file))
            }
            _ => self.function.clone(),
        }
    }
}

/// Returns `text` without characters that break a line or change its direction, cut to the maximum length.
fn clean_name(text: &str) -> String {
    let plain = |character: char| match character {
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => ' ',
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => ' ',
        control if control.is_control() => ' ',
        other => other,
    };
    let mut characters = text.trim().chars().map(plain);
    let mut kept: String = characters.by_ref().take(MAX_NAME_CHARS).collect();
    if characters.next().is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

/// A tree of calls with a weight for each: microseconds, or bytes.
#[derive(Clone, Debug)]
pub struct CallTree {
    frames: Vec<ProfiledFunction>,
    /// The index of each frame in `frames`.
    ids: HashMap<ProfiledFunction, usize>,
    /// The nodes, parents before their children. The first is the root, which is no call.
    nodes: Vec<CallTreeNode>,
    /// The child of a node for a frame.
    children: HashMap<(usize, usize), usize>,
    /// The weight of each line that ran, by frame and line, where the profile tells lines.
    lines: HashMap<(usize, u32), u64>,
}

#[derive(Clone, Copy, Debug)]
struct CallTreeNode {
    frame: usize,
    parent: usize,
    self_weight: u64,
}

/// The weight of one function in the whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionCost<'a> {
    /// The function.
    pub frame: &'a ProfiledFunction,
    /// The weight of the function itself.
    pub self_weight: u64,
    /// The weight of the function and everything it called; a recursive call counts once.
    pub total: u64,
}

/// A node of the tree with its position, for drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallNode<'a> {
    /// The function. `None` for the root.
    pub frame: Option<&'a ProfiledFunction>,
    /// The depth; that of the root is 0.
    pub depth: usize,
    /// The sum of the weights before it on its level, at which it begins.
    pub start: u64,
    /// The weight of the node and all nodes below it.
    pub total: u64,
}

/// The source location of a function, from debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionLocation {
    /// The function, as the profile names it.
    pub(super) frame: ProfiledFunction,
    pub(super) file: String,
    pub(super) line: Option<u32>,
}

impl Default for CallTree {
    fn default() -> Self {
        let root = CallTreeNode { frame: usize::MAX, parent: 0, self_weight: 0 };
        Self {
            frames: Vec::new(),
            ids: HashMap::new(),
            nodes: vec![root],
            children: HashMap::new(),
            lines: HashMap::new(),
        }
    }
}

impl CallTree {
    /// Registers `frame` and returns its index, for [`Self::add`].
    pub fn frame(&mut self, frame: ProfiledFunction) -> usize {
        if let Some(id) = self.ids.get(&frame) {
            return *id;
        }
        self.frames.push(frame.clone());
        self.ids.insert(frame, self.frames.len() - 1);
        self.frames.len() - 1
    }

    /// Adds `weight` to the last frame of `stack`, which begins with the outermost call.
    pub fn add(&mut self, stack: &[usize], weight: u64) {
        let mut node_index = 0;
        if stack.len() <= MAX_DEPTH {
            for frame in stack {
                node_index = self.child(node_index, *frame);
            }
        } else {
            // The outermost calls show the entry, and the innermost ones where the weight is: the middle is left out.
            let gap = self.frame(ProfiledFunction::new("[…]", None, None));
            let (outer, inner) = (MAX_DEPTH / 2, MAX_DEPTH - MAX_DEPTH / 2 - 1);
            let ends = stack.iter().take(outer).chain([&gap]).chain(stack.iter().skip(stack.len() - inner));
            for frame in ends {
                node_index = self.child(node_index, *frame);
            }
        }
        if let Some(node) = self.nodes.get_mut(node_index) {
            node.self_weight = node.self_weight.saturating_add(weight);
        }
    }

    /// Adds `weight` to a line of a frame: the part of the frame's own weight that was spent there.
    pub fn add_line(&mut self, frame: usize, line: u32, weight: u64) {
        if line > 0 && frame < self.frames.len() && self.lines.len() < MAX_LINES {
            let total = self.lines.entry((frame, line)).or_default();
            *total = total.saturating_add(weight);
        }
    }

    /// Returns the lines of a function with their own weights, the largest first. Empty if the profile tells none.
    pub fn lines(&self, function: &ProfiledFunction) -> Vec<(u32, u64)> {
        let Some(id) = self.ids.get(function) else { return Vec::new() };
        let of_frame = self.lines.iter().filter(|((frame, _), weight)| frame == id && **weight > 0);
        let mut lines: Vec<(u32, u64)> = of_frame.map(|((_, line), weight)| (*line, *weight)).collect();
        lines.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        lines
    }

    /// Returns the function of `file` that begins last at or before `line`.
    pub fn function_at(&self, file: &str, line: u32) -> Option<&ProfiledFunction> {
        let of_file = self.frames.iter().filter(|frame| frame.file.as_deref() == Some(file));
        let before = of_file.filter(|frame| frame.line.is_some_and(|start| start <= line));
        before.max_by_key(|frame| (frame.line, &frame.function))
    }

    /// Returns the child of `parent` for `frame`, and creates it if the tree has room.
    fn child(&mut self, parent: usize, frame: usize) -> usize {
        if let Some(child) = self.children.get(&(parent, frame)) {
            return *child;
        }
        if self.nodes.len() >= MAX_NODES || frame >= self.frames.len() {
            // The weight then counts for the parent, so the sum of the tree stays right.
            return parent;
        }
        self.nodes.push(CallTreeNode { frame, parent, self_weight: 0 });
        self.children.insert((parent, frame), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// Returns the sum of all weights.
    pub fn total(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.self_weight))
    }

    /// Returns true if all weights are 0.
    pub fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| node.self_weight == 0)
    }

    /// Returns the weight of each node with all nodes below it.
    fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.self_weight).collect();
        // Children come after their parents, so each sum is complete when it is added to the parent's.
        for index in (1..self.nodes.len()).rev() {
            let (total, parent) = (totals.get(index).copied(), self.nodes.get(index).map(|node| node.parent));
            if let (Some(total), Some(parent)) = (total, parent.and_then(|parent| totals.get_mut(parent))) {
                *parent = parent.saturating_add(total);
            }
        }
        totals
    }

    /// Returns all nodes, parents before their children and larger siblings first.
    pub fn nodes_in_order(&self) -> Vec<CallNode<'_>> {
        let totals = self.totals();
        let total = |node: &usize| totals.get(*node).copied().unwrap_or_default();
        let name = |node: &usize| self.nodes.get(*node).and_then(|node| self.frames.get(node.frame));
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            if let Some(siblings) = children.get_mut(node.parent) {
                siblings.push(index);
            }
        }
        for siblings in &mut children {
            siblings.sort_by(|a, b| total(b).cmp(&total(a)).then_with(|| name(a).cmp(&name(b))));
        }
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut next = vec![(0, 0, 0)];
        while let Some((index, depth, start)) = next.pop() {
            nodes.push(CallNode { frame: name(&index), depth, start, total: total(&index) });
            let mut start = start;
            let from = next.len();
            for child in children.get(index).into_iter().flatten() {
                next.push((*child, depth + 1, start));
                start += total(child);
            }
            // The last one pushed is popped first, and the first child has to be drawn first.
            if let Some(pushed) = next.get_mut(from..) {
                pushed.reverse();
            }
        }
        nodes
    }

    /// Returns the weight of each function, the largest own weight first. A recursive call counts once.
    pub fn functions(&self) -> Vec<FunctionCost<'_>> {
        let totals = self.totals();
        let mut self_weight = vec![0_u64; self.frames.len()];
        let mut function_totals = vec![0_u64; self.frames.len()];
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            if let Some(self_weight) = self_weight.get_mut(node.frame) {
                *self_weight = self_weight.saturating_add(node.self_weight);
            }
            if let Some(siblings) = children.get_mut(node.parent) {
                siblings.push(index);
            }
        }
        // The number of times each function is on the path from the root to the current node: only its outermost call
        // adds to its total.
        let mut open = vec![0_usize; self.frames.len()];
        let mut steps: Vec<(usize, bool)> =
            children.first().into_iter().flatten().map(|child| (*child, true)).collect();
        while let Some((index, enters)) = steps.pop() {
            let Some(node) = self.nodes.get(index) else { continue };
            let Some(times) = open.get_mut(node.frame) else { continue };
            if !enters {
                *times -= 1;
                continue;
            }
            if *times == 0
                && let (Some(function_total), Some(total)) =
                    (function_totals.get_mut(node.frame), totals.get(index))
            {
                *function_total = function_total.saturating_add(*total);
            }
            *times += 1;
            // Pushed before the children, so that it is popped when all of them are done.
            steps.push((index, false));
            steps.extend(children.get(index).into_iter().flatten().map(|child| (*child, true)));
        }
        let weights = self.frames.iter().zip(self_weight.into_iter().zip(function_totals));
        let mut costs: Vec<_> = weights
            .filter(|(_, (_, total))| *total > 0)
            .map(|(frame, (self_weight, total))| FunctionCost { frame, self_weight, total })
            .collect();
        costs.sort_by(|a, b| (b.self_weight, b.total, a.frame).cmp(&(a.self_weight, a.total, b.frame)));
        costs
    }

    /// Formats the tree as folded stacks, which flame graph programs read: a line for each node, with its calls joined
    /// by `;` and its own weight.
    pub fn to_folded(&self) -> String {
        let mut text = String::new();
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.self_weight > 0) {
            let mut stack = Vec::new();
            let mut ancestor = index;
            while ancestor != 0
                && let Some(node) = self.nodes.get(ancestor)
            {
                stack.extend(self.frames.get(node.frame));
                ancestor = node.parent;
            }
            // The format has no escape for its separator.
            let names = stack.iter().rev().map(|frame| frame.to_text().replace(';', ":"));
            let _ = writeln!(text, "{} {}", names.collect::<Vec<_>>().join(";"), node.self_weight);
        }
        text
    }
}

/// Parses folded stacks.
#[cfg(test)]
pub(super) fn tree(folded: &str) -> CallTree {
    let mut tree = CallTree::default();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let stack: Vec<_> =
            stack.split(';').map(|name| tree.frame(ProfiledFunction::new(name, None, None))).collect();
        tree.add(&stack, weight.parse().unwrap());
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_function_that_calls_itself_has_each_moment_once() {
        let tree = tree("main;fib;fib;fib 4\nmain;fib 1\nmain;other;fib 2\nmain 3");
        let functions: Vec<_> = tree
            .functions()
            .iter()
            .map(|spent| (spent.frame.function.clone(), spent.self_weight, spent.total))
            .collect();
        let expected = [("fib", 7, 7), ("main", 3, 10), ("other", 0, 2)];
        assert_eq!(
            functions,
            expected.map(|(name, self_weight, total)| (name.to_owned(), self_weight, total))
        );
    }

    #[test]
    fn places_lie_within_their_callers_and_the_larger_come_first() {
        let tree = tree("a;small 1\na;large 5\na 2\nb 4");
        let nodes: Vec<_> = tree
            .nodes_in_order()
            .iter()
            .map(|node| {
                let name = node.frame.map_or("", |frame| frame.function.as_str()).to_owned();
                (name, node.depth, node.start, node.total)
            })
            .collect();
        let expected =
            [("", 0, 0, 12), ("a", 1, 0, 8), ("large", 2, 0, 5), ("small", 2, 5, 1), ("b", 1, 8, 4)];
        assert_eq!(nodes, expected.map(|(name, depth, start, total)| (name.to_owned(), depth, start, total)));
    }

    #[test]
    fn a_name_can_break_no_line_and_no_stack() {
        let mut tree = CallTree::default();
        let frame = tree.frame(ProfiledFunction::new("evil;\n\u{202e}<b>\0", Some("a\r\nb;c.js"), Some(3)));
        tree.add(&[frame], 1);
        assert_eq!(tree.to_folded(), "evil:  <b>  (a  b:c.js:3) 1\n");
        assert_eq!(
            ProfiledFunction::new("", None, Some(0)),
            ProfiledFunction::new("(anonymous)", None, None)
        );
        assert_eq!(
            ProfiledFunction::new(&"ä".repeat(500), None, None).function.chars().count(),
            MAX_NAME_CHARS
        );
    }

    #[test]
    fn of_a_stack_too_deep_both_ends_are_kept() {
        let mut tree = CallTree::default();
        let stack: Vec<_> =
            (0..1000).map(|at| tree.frame(ProfiledFunction::new(&format!("f{at}"), None, None))).collect();
        tree.add(&stack, 7);
        let nodes = tree.nodes_in_order();
        assert_eq!(nodes.iter().map(|node| node.depth).max(), Some(MAX_DEPTH));
        let functions = tree.functions();
        assert_eq!((functions[0].frame.function.as_str(), functions[0].self_weight), ("f999", 7));
        assert!(functions.iter().any(|spent| spent.frame.function == "f0" && spent.total == 7));
    }

    proptest! {
        #[test]
        fn nothing_that_was_spent_is_lost(
            stacks in prop::collection::vec((prop::collection::vec(0_usize..6, 0..300), 0_u64..1000), 0..20)
        ) {
            let mut tree = CallTree::default();
            let ids: Vec<_> =
                (0..6).map(|at| tree.frame(ProfiledFunction::new(&format!("f{at}"), None, None))).collect();
            let mut spent = 0;
            for (stack, weight) in &stacks {
                let stack: Vec<_> = stack.iter().map(|at| ids[*at]).collect();
                tree.add(&stack, *weight);
                spent += weight;
            }
            prop_assert_eq!(tree.total(), spent);
            prop_assert_eq!(tree.nodes_in_order()[0].total, spent);
            prop_assert!(tree.functions().iter().all(|function| function.total <= spent && function.self_weight <= function.total));
        }
    }
}
