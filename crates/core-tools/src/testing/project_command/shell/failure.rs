//! The effect that a failure has where a shell acts on it: `|| exit 1`, `|| failed=1`, `else return 1`.

use super::exit_flow::Place;
use super::words::{Source, children, descendants, named_children};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use tree_sitter::Node;

/// The number of functions that call each other which are followed.
const MAX_CALLS: usize = 4;

/// The nodes of a text that acts on failures.
pub(super) struct FailureActions<'s, 't> {
    source: Source<'s>,
    root: Node<'t>,
    /// The bodies of the functions of the text.
    pub(super) functions: BTreeMap<&'s str, Node<'t>>,
    /// The answers for variables and for nodes that were asked for before: a large script asks for some of them thousands of
    /// times.
    decisions: RefCell<HashMap<String, bool>>,
    failures: RefCell<HashMap<(usize, [bool; 3], usize), bool>>,
}

impl<'s, 't> FailureActions<'s, 't> {
    pub(super) fn new(source: Source<'s>, root: Node<'t>) -> Self {
        let nodes = descendants(root, |_| true).into_iter();
        let functions = nodes.filter(|node| node.kind() == "function_definition").filter_map(|node| {
            let (name, body) = (node.child_by_field_name("name")?, node.child_by_field_name("body")?);
            Some((source.of(name), body))
        });
        let (decisions, failures) = (RefCell::default(), RefCell::default());
        Self { source, root, functions: functions.collect(), decisions, failures }
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
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
        let mut names =
            names.split(|c| !is_of_name(c)).filter(|name| name.starts_with(|c: char| !c.is_ascii_digit()));
        names.any(|name| {
            if let Some(known) = self.decisions.borrow().get(name) {
                return *known;
            }
            let decides = self.decides(name);
            self.decisions.borrow_mut().insert(name.to_owned(), decides);
            decides
        })
    }

    fn decides(&self, name: &str) -> bool {
        let has_name = |text: &str| Source::has_name(text, name);
        let ends = |node: Node<'t>| {
            descendants(node, |_| true).into_iter().any(|node| {
                node.kind() == "command"
                    && match self.source.name(node) {
                        "exit" | "return" => self.source.arguments(node).first() != Some(&"0"),
                        "false" => true,
                        // A function that ends the script: `die "failed"`.
                        name => self.functions.get(name).is_some_and(|body| {
                            let body = self.source.of(*body);
                            body.contains("exit") || body.contains("return")
                        }),
                    }
            })
        };
        let last = named_children(self.root).filter(|node| node.kind() != "function_definition").last();
        descendants(self.root, |_| true).into_iter().any(|node| {
            let text = self.source.of(node);
            match node.kind() {
                "command" => match self.source.name(node) {
                    "exit" | "return" => has_name(text),
                    "trap" => text.contains("exit") && has_name(text),
                    "test" | "[" => last == Some(node) && has_name(text),
                    _ => false,
                },
                "test_command" => last == Some(node) && has_name(text),
                "compound_statement" if text.starts_with("((") => last == Some(node) && has_name(text),
                "if_statement" => {
                    let mut conditions = children(node).filter(|(_, field)| *field == Some("condition"));
                    conditions.any(|(condition, _)| has_name(self.source.of(condition))) && ends(node)
                }
                "case_statement" => {
                    let value = node.child_by_field_name("value");
                    value.is_some_and(|value| has_name(self.source.of(value))) && ends(node)
                }
                "list" => {
                    let left = named_children(node).next();
                    (left.is_some_and(|left| has_name(self.source.of(left))) && ends(node))
                        || (last == Some(node) && has_name(text))
                }
                _ => false,
            }
        })
    }
}
