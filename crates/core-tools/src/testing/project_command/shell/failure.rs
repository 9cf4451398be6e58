//! The effect that a failure has where a shell acts on it: `|| exit 1`, `|| failed=1`, `else return 1`.

use super::exit_flow::Place;
use super::words::{Source, children, descendants, named_children};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use tree_sitter::Node;

/// The number of functions that call each other which are followed.
const MAX_CALLS: usize = 4;

/// The nodes of a text that acts on failures.
pub(super) struct FailureActions<'s, 't> {
    source: Source<'s>,
    root: Node<'t>,
    /// The bodies of the functions of the text.
    pub(super) functions: BTreeMap<&'s str, Node<'t>>,
    /// The names by which the text decides on its exit code.
    deciding_names: OnceCell<HashSet<&'s str>>,
    /// The answers for nodes that were asked for before: a large script asks for some of them thousands of times.
    failures: RefCell<HashMap<(usize, [bool; 3], usize), bool>>,
}

impl<'s, 't> FailureActions<'s, 't> {
    pub(super) fn new(source: Source<'s>, root: Node<'t>) -> Self {
        let nodes = descendants(root, |_| true).into_iter();
        let functions = nodes.filter(|node| node.kind() == "function_definition").filter_map(|node| {
            let (name, body) = (node.child_by_field_name("name")?, node.child_by_field_name("body")?);
            Some((source.of(name), body))
        });
        let (deciding_names, failures) = (OnceCell::new(), RefCell::default());
        Self { source, root, functions: functions.collect(), deciding_names, failures }
    }

    /// Returns true if the failure that leads to `node` becomes that of the whole: `exit 1`, or a variable that the text
    /// looks at later.
    pub(super) fn fails(&self, node: Node<'t>, place: Place) -> bool {
        self.fails_in(node, place, 0)
    }

    fn fails_in(&self, node: Node<'t>, place: Place, calls: usize) -> bool {
        let key = (node.id(), [place.exit, place.returns, place.tail], calls);
        if let Some(known) = self.failures.borrow().get(&key) {
            return *known;
        }
        let fails = self.finds_failure(node, place, calls);
        self.failures.borrow_mut().insert(key, fails);
        fails
    }

    fn finds_failure(&self, node: Node<'t>, place: Place, calls: usize) -> bool {
        let is_code = |node: Node<'t>| !matches!(node.kind(), "function_definition" | "command_substitution");
        descendants(node, is_code).into_iter().any(|node| match node.kind() {
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
                        // A function that only returns has the exit code of its call.
                        body.is_some_and(|body| {
                            self.fails_in(*body, Place { returns: place.tail, ..place }, calls + 1)
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
        let text = self.source.of(next);
        if next.kind() == "command" {
            let arguments = self.source.arguments(next);
            let is_own = arguments.first().is_none_or(|code| matches!(*code, "$?" | "${?}"));
            match self.source.name(next) {
                "exit" if is_own => return place.exit,
                "return" if is_own => return place.returns,
                _ => {}
            }
        }
        let has_code = ["$?", "${?}", "PIPESTATUS", "pipestatus"].iter().any(|code| text.contains(code));
        has_code && self.fails(next, place)
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
                    texts.extend(named_children(node).next().map(|left| self.source.of(left)))
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
