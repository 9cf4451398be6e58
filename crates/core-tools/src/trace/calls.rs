//! What every profile of calls becomes: a tree, with what was spent in each place of it.

use std::collections::HashMap;
use std::fmt::Write as _;

/// One function, as a profiler names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Its name: one line, without control characters, at most 200 characters.
    pub function: String,
    /// Where it is written: a path, a URL, or the library it is in.
    pub file: Option<String>,
    /// Its line there, from 1.
    pub line: Option<u32>,
}

/// What a function without a name is called.
const ANONYMOUS: &str = "(anonymous)";
/// The longest name, in characters.
const NAME: usize = 200;
/// Calls within calls that are kept. Of a deeper stack the middle is left out.
const DEEPEST: usize = 256;
/// Places that are kept; what is spent beyond them is booked where the tree ends.
const MOST_NODES: usize = 400_000;

impl Frame {
    /// A frame with a name that can stand in a line, a list of names and a picture, whatever the program under
    /// profile called its function.
    pub fn new(function: &str, file: Option<&str>, line: Option<u32>) -> Self {
        let function = printable(function);
        Self {
            function: if function.is_empty() { ANONYMOUS.to_owned() } else { function },
            file: file.map(printable).filter(|file| !file.is_empty()),
            line: line.filter(|line| *line > 0),
        }
    }

    /// Function, file and line, as messages have it.
    pub fn to_text(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({file}:{line})", self.function),
            (Some(file), None) => format!("{} ({file})", self.function),
            _ => self.function.clone(),
        }
    }
}

impl Frame {
    /// What stands on a bar of a picture: the name, and for one without a name where it is.
    pub(super) fn label(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) if self.function == ANONYMOUS => {
                format!("{ANONYMOUS} {}:{line}", file.rsplit('/').next().unwrap_or(file))
            }
            _ => self.function.clone(),
        }
    }
}

/// `text` without what breaks a line or turns its direction, and not too long.
fn printable(text: &str) -> String {
    let plain = |character: char| match character {
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => ' ',
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => ' ',
        control if control.is_control() => ' ',
        other => other,
    };
    let mut characters = text.trim().chars().map(plain);
    let mut kept: String = characters.by_ref().take(NAME).collect();
    if characters.next().is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

/// Calls that lead to calls, and what was spent in each: microseconds, or bytes.
#[derive(Clone, Debug)]
pub struct CallTree {
    frames: Vec<Frame>,
    ids: HashMap<Frame, usize>,
    /// Parents stand before their children; the first is the root, which is no call.
    nodes: Vec<Node>,
    children: HashMap<(usize, usize), usize>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    frame: usize,
    parent: usize,
    own: u64,
}

/// What was spent in one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent<'a> {
    /// The function.
    pub frame: &'a Frame,
    /// In itself.
    pub own: u64,
    /// In itself and in what it called, each moment counted once.
    pub total: u64,
}

/// One place of the tree, for those who draw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed<'a> {
    /// The function. The root has none.
    pub frame: Option<&'a Frame>,
    /// How deep it is; the root is at 0.
    pub depth: usize,
    /// Where it begins, in the unit of the weights.
    pub start: u64,
    /// How much was spent in it and below.
    pub total: u64,
}

impl Default for CallTree {
    fn default() -> Self {
        let root = Node { frame: usize::MAX, parent: 0, own: 0 };
        Self { frames: Vec::new(), ids: HashMap::new(), nodes: vec![root], children: HashMap::new() }
    }
}

impl CallTree {
    /// A number for `frame`, for [`Self::add`].
    pub fn frame(&mut self, frame: Frame) -> usize {
        if let Some(id) = self.ids.get(&frame) {
            return *id;
        }
        self.frames.push(frame.clone());
        self.ids.insert(frame, self.frames.len() - 1);
        self.frames.len() - 1
    }

    /// Books `weight` to the last of `stack`, which begins with the outermost call.
    pub fn add(&mut self, stack: &[usize], weight: u64) {
        let mut at = 0;
        if stack.len() <= DEEPEST {
            for frame in stack {
                at = self.child(at, *frame);
            }
        } else {
            let gap = self.frame(Frame::new("[…]", None, None));
            let (outer, inner) = (DEEPEST / 2, DEEPEST - DEEPEST / 2 - 1);
            let ends = stack.iter().take(outer).chain([&gap]).chain(stack.iter().skip(stack.len() - inner));
            for frame in ends {
                at = self.child(at, *frame);
            }
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.own = node.own.saturating_add(weight);
        }
    }

    fn child(&mut self, parent: usize, frame: usize) -> usize {
        if let Some(child) = self.children.get(&(parent, frame)) {
            return *child;
        }
        if self.nodes.len() >= MOST_NODES || frame >= self.frames.len() {
            return parent;
        }
        self.nodes.push(Node { frame, parent, own: 0 });
        self.children.insert((parent, frame), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// All that was spent.
    pub fn total(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.own))
    }

    /// Nothing was spent.
    pub fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| node.own == 0)
    }

    /// What was spent in each place and below it.
    fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.own).collect();
        // Children stand behind their parents.
        for at in (1..self.nodes.len()).rev() {
            let (below, parent) = (totals.get(at).copied(), self.nodes.get(at).map(|node| node.parent));
            if let (Some(below), Some(parent)) = (below, parent.and_then(|parent| totals.get_mut(parent))) {
                *parent = parent.saturating_add(below);
            }
        }
        totals
    }

    /// Each place, parents before their children and the larger of siblings first.
    pub fn places(&self) -> Vec<Placed<'_>> {
        let totals = self.totals();
        let total = |node: &usize| totals.get(*node).copied().unwrap_or_default();
        let name = |node: &usize| self.nodes.get(*node).and_then(|node| self.frames.get(node.frame));
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            if let Some(siblings) = below.get_mut(node.parent) {
                siblings.push(at);
            }
        }
        for siblings in &mut below {
            siblings.sort_by(|a, b| total(b).cmp(&total(a)).then_with(|| name(a).cmp(&name(b))));
        }
        let mut places = Vec::with_capacity(self.nodes.len());
        let mut next = vec![(0, 0, 0)];
        while let Some((at, depth, start)) = next.pop() {
            places.push(Placed { frame: name(&at), depth, start, total: total(&at) });
            let mut start = start;
            let from = next.len();
            for child in below.get(at).into_iter().flatten() {
                next.push((*child, depth + 1, start));
                start += total(child);
            }
            if let Some(pushed) = next.get_mut(from..) {
                pushed.reverse();
            }
        }
        places
    }

    /// What was spent in each function, the most in itself first. One that calls itself has each moment once.
    pub fn functions(&self) -> Vec<Spent<'_>> {
        let totals = self.totals();
        let mut own = vec![0_u64; self.frames.len()];
        let mut all = vec![0_u64; self.frames.len()];
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            if let Some(own) = own.get_mut(node.frame) {
                *own = own.saturating_add(node.own);
            }
            if let Some(children) = below.get_mut(node.parent) {
                children.push(at);
            }
        }
        // How often each function is on the way from the root to where the walk is.
        let mut open = vec![0_usize; self.frames.len()];
        let mut steps: Vec<(usize, bool)> =
            below.first().into_iter().flatten().map(|at| (*at, true)).collect();
        while let Some((at, enters)) = steps.pop() {
            let Some(node) = self.nodes.get(at) else { continue };
            let Some(times) = open.get_mut(node.frame) else { continue };
            if !enters {
                *times -= 1;
                continue;
            }
            if *times == 0
                && let (Some(all), Some(total)) = (all.get_mut(node.frame), totals.get(at))
            {
                *all = all.saturating_add(*total);
            }
            *times += 1;
            steps.push((at, false));
            steps.extend(below.get(at).into_iter().flatten().map(|child| (*child, true)));
        }
        let spent = self.frames.iter().zip(own.into_iter().zip(all));
        let mut spent: Vec<_> = spent
            .filter(|(_, (_, total))| *total > 0)
            .map(|(frame, (own, total))| Spent { frame, own, total })
            .collect();
        spent.sort_by(|a, b| (b.own, b.total, a.frame).cmp(&(a.own, a.total, b.frame)));
        spent
    }

    /// Folded stacks, as flame graph programs read them: a line for each place, its calls joined with `;`, and
    /// what was spent there.
    pub fn to_folded(&self) -> String {
        let mut text = String::new();
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.own > 0) {
            let mut stack = Vec::new();
            let mut up = at;
            while up != 0
                && let Some(node) = self.nodes.get(up)
            {
                stack.extend(self.frames.get(node.frame));
                up = node.parent;
            }
            let names = stack.iter().rev().map(|frame| frame.to_text().replace(';', ":"));
            let _ = writeln!(text, "{} {}", names.collect::<Vec<_>>().join(";"), node.own);
        }
        text
    }
}

#[cfg(test)]
pub(super) fn tree(folded: &str) -> CallTree {
    let mut tree = CallTree::default();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let stack: Vec<_> = stack.split(';').map(|name| tree.frame(Frame::new(name, None, None))).collect();
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
            .map(|spent| (spent.frame.function.clone(), spent.own, spent.total))
            .collect();
        let expected = [("fib", 7, 7), ("main", 3, 10), ("other", 0, 2)];
        assert_eq!(functions, expected.map(|(name, own, total)| (name.to_owned(), own, total)));
    }

    #[test]
    fn places_lie_within_their_callers_and_the_larger_come_first() {
        let tree = tree("a;small 1\na;large 5\na 2\nb 4");
        let places: Vec<_> = tree
            .places()
            .iter()
            .map(|place| {
                let name = place.frame.map_or("", |frame| frame.function.as_str()).to_owned();
                (name, place.depth, place.start, place.total)
            })
            .collect();
        let expected =
            [("", 0, 0, 12), ("a", 1, 0, 8), ("large", 2, 0, 5), ("small", 2, 5, 1), ("b", 1, 8, 4)];
        assert_eq!(
            places,
            expected.map(|(name, depth, start, total)| (name.to_owned(), depth, start, total))
        );
    }

    #[test]
    fn a_name_can_break_no_line_and_no_stack() {
        let mut tree = CallTree::default();
        let frame = tree.frame(Frame::new("evil;\n\u{202e}<b>\0", Some("a\r\nb;c.js"), Some(3)));
        tree.add(&[frame], 1);
        assert_eq!(tree.to_folded(), "evil:  <b>  (a  b:c.js:3) 1\n");
        assert_eq!(Frame::new("", None, Some(0)), Frame::new("(anonymous)", None, None));
        assert_eq!(Frame::new(&"ä".repeat(500), None, None).function.chars().count(), NAME);
    }

    #[test]
    fn of_a_stack_too_deep_both_ends_are_kept() {
        let mut tree = CallTree::default();
        let stack: Vec<_> =
            (0..1000).map(|at| tree.frame(Frame::new(&format!("f{at}"), None, None))).collect();
        tree.add(&stack, 7);
        let places = tree.places();
        assert_eq!(places.iter().map(|place| place.depth).max(), Some(DEEPEST));
        let functions = tree.functions();
        assert_eq!((functions[0].frame.function.as_str(), functions[0].own), ("f999", 7));
        assert!(functions.iter().any(|spent| spent.frame.function == "f0" && spent.total == 7));
    }

    proptest! {
        #[test]
        fn nothing_that_was_spent_is_lost(
            stacks in prop::collection::vec((prop::collection::vec(0_usize..6, 0..300), 0_u64..1000), 0..20)
        ) {
            let mut tree = CallTree::default();
            let ids: Vec<_> =
                (0..6).map(|at| tree.frame(Frame::new(&format!("f{at}"), None, None))).collect();
            let mut spent = 0;
            for (stack, weight) in &stacks {
                let stack: Vec<_> = stack.iter().map(|at| ids[*at]).collect();
                tree.add(&stack, *weight);
                spent += weight;
            }
            prop_assert_eq!(tree.total(), spent);
            prop_assert_eq!(tree.places()[0].total, spent);
            prop_assert!(tree.functions().iter().all(|function| function.total <= spent && function.own <= function.total));
        }
    }
}
