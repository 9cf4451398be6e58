//! The effect that a failure has where a shell acts on it: `|| exit 1`, `|| failed=1`, `else return 1`.

use super::place::Place;
use super::words::{Source, children, descendants, named_children};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use tree_sitter::Node;

/// The number of functions that call each other which are followed.
const MAX_CALLS: usize = 4;

/// A node, the parts of its place that matter, and the number of calls that led to it.
type FailureKey = (usize, [bool; 4], usize);

/// The nodes of a text that acts on failures.
pub(super) struct FailureActions<'s, 't> {
    source: Source<'s>,
    root: Node<'t>,
    /// The bodies of the functions of the text.
    pub(super) functions: BTreeMap<&'s str, Node<'t>>,
    /// The place of the last command that fails for certain: `exit 1`, `false`.
    pub(super) last_failing_end: Option<usize>,
    /// The names by which the text decides on its exit code.
    deciding_names: OnceCell<HashSet<&'s str>>,
    /// The answers for nodes that were asked for before: a large script asks for some of them thousands of times.
    failures: RefCell<HashMap<FailureKey, bool>>,
}

impl<'s, 't> FailureActions<'s, 't> {
    pub(super) fn new(source: Source<'s>, root: Node<'t>) -> Self {
        let nodes = descendants(root, |_| true);
        let functions = nodes.iter().filter(|node| node.kind() == "function_definition");
        let functions = functions.filter_map(|node| {
            let (name, body) = (node.child_by_field_name("name")?, node.child_by_field_name("body")?);
            Some((source.of(name), body))
        });
        let fails = |node: &&Node<'t>| match source.name(**node) {
            "exit" | "return" => source
                .arguments(**node)
                .first()
                .is_some_and(|code| code.parse::<u8>().is_ok_and(|code| code > 0)),
            name => name == "false",
        };
        let commands = nodes.iter().filter(|node| node.kind() == "command");
        Self {
            source,
            root,
            functions: functions.collect(),
            last_failing_end: commands.filter(fails).map(Node::start_byte).max(),
            deciding_names: OnceCell::new(),
            failures: RefCell::default(),
        }
    }

    /// Returns true if the failure that leads to `node` becomes that of the whole: `exit 1`, or a variable that the text
    /// looks at later.
    pub(super) fn fails(&self, node: Node<'t>, place: Place) -> bool {
        self.fails_in(node, place, false, 0)
    }

    /// `is_decided` says that a look at the exit code led here.
    fn fails_in(&self, node: Node<'t>, place: Place, is_decided: bool, calls: usize) -> bool {
        let key = (node.id(), [place.exit, place.returns, place.tail, is_decided], calls);
        if let Some(known) = self.failures.borrow().get(&key) {
            return *known;
        }
        let fails = self.finds_failure(node, place, is_decided, calls);
        self.failures.borrow_mut().insert(key, fails);
        fails
    }

    fn finds_failure(&self, node: Node<'t>, place: Place, is_decided: bool, calls: usize) -> bool {
        self.acting_nodes(node, is_decided).into_iter().any(|(node, is_decided)| match node.kind() {
            "command" => {
                let arguments = self.source.arguments(node);
                let is_zero = arguments.first() == Some(&"0");
                match self.source.name(node) {
                    "exit" => place.exit && !is_zero,
                    "return" => place.returns && !is_zero,
                    "false" => place.tail,
                    "let" => arguments.iter().any(|text| self.is_looked_at(text)),
                    name => {
                        let body = self.functions.get(name).filter(|_| calls < MAX_CALLS);
                        // `check $?`: the function decides by its argument.
                        let is_decided = is_decided || self.looks_at_code(node);
                        // A function that only returns has the exit code of its call.
                        body.is_some_and(|body| {
                            let place = Place { returns: place.tail, ..place };
                            self.fails_in(*body, place, is_decided, calls + 1)
                        })
                    }
                }
            }
            "variable_assignment" => {
                node.child_by_field_name("name").is_some_and(|name| self.is_looked_at(self.source.of(name)))
            }
            // `((failed++))`.
            "compound_statement" if self.source.of(node).starts_with("((") => {
                self.is_looked_at(self.source.of(node))
            }
            _ => false,
        })
    }

    /// Returns true if `next`, which follows a command, looks at its exit code and acts on it.
    pub(super) fn acts_on_code(&self, next: Node<'t>, place: Place) -> bool {
        if next.kind() == "command" {
            let arguments = self.source.arguments(next);
            let is_own = arguments.first().is_none_or(|code| matches!(*code, "$?" | "${?}"));
            match self.source.name(next) {
                "exit" if is_own => return place.exit,
                "return" if is_own => return place.returns,
                _ => {}
            }
        }
        self.looks_at_code(next) && self.fails(next, place)
    }

    /// Returns true if a text names the exit code of the command before it.
    pub(super) fn looks_at_code(&self, node: Node<'t>) -> bool {
        let text = self.source.of(node);
        ["$?", "${?}", "PIPESTATUS", "pipestatus"].iter().any(|code| text.contains(code))
    }

    /// Returns the nodes below a node that run in any case, or as a look at the exit code decides, with whether there was such a
    /// look. What runs only as something else decides is left out: `[ -n "$CI" ] && exit 1`.
    fn acting_nodes(&self, node: Node<'t>, is_decided: bool) -> Vec<(Node<'t>, bool)> {
        let (mut found, mut open) = (Vec::new(), vec![(node, is_decided)]);
        while let Some((node, is_decided)) = open.pop() {
            found.push((node, is_decided));
            let header = |name: &str| {
                let nodes = children(node).filter(|(_, field)| *field == Some(name)).map(|(child, _)| child);
                nodes.collect::<Vec<_>>()
            };
            let deciding = match node.kind() {
                "function_definition" | "command_substitution" => continue,
                "if_statement" | "while_statement" => header("condition"),
                "for_statement" | "case_statement" => header("value"),
                "list" => named_children(node).take(1).collect(),
                _ => Vec::new(),
            };
            let is_conditional = !deciding.is_empty() && !self.is_certain(node, &deciding);
            let is_decided = is_decided || deciding.iter().any(|node| self.looks_at_code(*node));
            let mut below: Vec<_> =
                if is_conditional && !is_decided { deciding } else { named_children(node).collect() };
            below.reverse();
            open.extend(below.into_iter().map(|node| (node, is_decided)));
        }
        found
    }

    /// Returns true for a list whose left side always succeeds: `echo failed && exit 1`.
    fn is_certain(&self, node: Node<'t>, left: &[Node<'t>]) -> bool {
        const SUCCEEDING: [&str; 4] = [":", "echo", "printf", "true"];
        node.kind() == "list"
            && children(node).any(|(child, _)| child.kind() == "&&")
            && left
                .iter()
                .all(|left| left.kind() == "command" && SUCCEEDING.contains(&self.source.name(*left)))
    }

    /// Returns true if the text decides on its exit code by one of the variables in `names`.
    fn is_looked_at(&self, names: &str) -> bool {
        let deciding = self.deciding_names.get_or_init(|| self.deciding_names());
        words_of(names).any(|name| !name.starts_with(|c: char| c.is_ascii_digit()) && deciding.contains(name))
    }

    /// Returns the words of the parts of the text that decide on its exit code.
    fn deciding_names(&self) -> HashSet<&'s str> {
        let ends_script = |body: &Node<'t>| {
            let body = self.source.of(*body);
            body.contains("exit") || body.contains("return")
        };
        // Functions that end the script: `die "failed"`.
        let ending = self.functions.iter().filter(|(_, body)| ends_script(body));
        let ending: HashSet<&str> = ending.map(|(name, _)| *name).collect();
        let ends = |node: Node<'t>| {
            descendants(node, |_| true).into_iter().any(|node| {
                node.kind() == "command"
                    && match self.source.name(node) {
                        "exit" | "return" => self.source.arguments(node).first() != Some(&"0"),
                        "false" => true,
                        name => ending.contains(name),
                    }
            })
        };
        let last = named_children(self.root).filter(|node| node.kind() != "function_definition").last();
        let mut texts: Vec<&'s str> = Vec::new();
        for node in descendants(self.root, |_| true) {
            let text = self.source.of(node);
            match node.kind() {
                "command" => match self.source.name(node) {
                    "exit" | "return" => texts.push(text),
                    "trap" if text.contains("exit") => texts.push(text),
                    "test" | "[" if last == Some(node) => texts.push(text),
                    _ => {}
                },
                "test_command" if last == Some(node) => texts.push(text),
                "compound_statement" if text.starts_with("((") && last == Some(node) => texts.push(text),
                "if_statement" if ends(node) => {
                    let conditions = children(node).filter(|(_, field)| *field == Some("condition"));
                    texts.extend(conditions.map(|(condition, _)| self.source.of(condition)));
                }
                "case_statement" if ends(node) => {
                    texts.extend(node.child_by_field_name("value").map(|value| self.source.of(value)));
                }
                "list" if last == Some(node) => texts.push(text),
                "list" if ends(node) => {
                    texts.extend(named_children(node).next().map(|left| self.source.of(left)));
                }
                _ => {}
            }
        }
        texts.into_iter().flat_map(words_of).collect()
    }
}

/// Returns the words of a text that may be names.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
