//! The way of an exit code through a text of shell: which failure becomes that of the whole.

use super::branch::IfBranch;
use super::failure::FailureActions;
use super::loops::{Loop, LoopWords};
use super::options::ShellOptions;
use super::place::Place;
use super::words::{
    Source, children, children_with_background, descendants, is_loop, named_and_background, named_children,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use tree_sitter::Node;

/// The deepest nesting of statements that is followed.
const MAX_DEPTH: usize = 150;
/// The number of statements that are visited. Functions are visited once for each call.
const MAX_VISITS: usize = 20_000;

/// A command of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundCommand {
    pub(super) range: Range<usize>,
    /// Its failure is lost, in one of its runs at least.
    pub(super) is_hidden: bool,
    pub(super) is_condition: bool,
    pub(super) is_background: bool,
    /// It only gives values to variables.
    pub(super) is_assignment: bool,
    pub(super) loop_words: LoopWords,
}

/// A call of a function, as far as its commands depend on it.
#[derive(PartialEq, Eq, Hash)]
struct FunctionCall<'s> {
    name: &'s str,
    files: Vec<Arc<[String]>>,
    flags: [bool; 5],
    options: ShellOptions,
}

/// A walk through the statements of a text, in the order in which they run.
pub(super) struct ExitFlow<'s, 't> {
    source: Source<'s>,
    root: Node<'t>,
    actions: FailureActions<'s, 't>,
    options: ShellOptions,
    /// A trap ends the script with exit code 0.
    is_trapped: bool,
    /// By their places in the text.
    pub(super) found: BTreeMap<usize, FoundCommand>,
    /// The places of the commands that wait for certain commands in the background, and so get their exit codes.
    waits: BTreeSet<usize>,
    loops: Vec<Loop>,
    /// The functions whose bodies are visited at present.
    calls: Vec<&'s str>,
    visited_functions: HashMap<FunctionCall<'s>, (ShellOptions, bool)>,
    pub(super) visits: usize,
    pub(super) is_too_deep: bool,
}

impl<'s, 't> ExitFlow<'s, 't> {
    pub(super) fn new(text: &'s str, root: Node<'t>, options: ShellOptions) -> Self {
        let source = Source(text);
        Self {
            source,
            root,
            actions: FailureActions::new(source, root),
            options,
            is_trapped: false,
            found: BTreeMap::new(),
            waits: BTreeSet::new(),
            loops: Vec::new(),
            calls: Vec::new(),
            visited_functions: HashMap::new(),
            visits: 0,
            is_too_deep: false,
        }
    }

    /// Finds the commands of the whole text.
    pub(super) fn read(&mut self) {
        self.statements(named_and_background(self.root), Place::TOP);
        let functions: Vec<_> = self.actions.functions.iter().map(|(name, body)| (*name, *body)).collect();
        for (name, body) in functions {
            // Something that the text does not say calls the function: `"$1"`, another script.
            if !self.visited_functions.keys().any(|call| call.name == name) {
                self.statement(body, Place::TOP);
            }
        }
    }

    /// Returns true if the failure of a command in this place becomes that of the whole.
    fn passes(&self, place: Place) -> bool {
        !self.is_trapped && (place.tail || (self.options.errexit && !place.ignores_errexit && place.exit))
    }

    /// Visits statements that follow each other. The flag says that a statement runs in the background.
    fn statements(&mut self, statements: Vec<(Node<'t>, bool)>, place: Place) {
        let statements: Vec<_> =
            statements.into_iter().filter(|(node, _)| node.kind() != "function_definition").collect();
        let mut in_background = Vec::new();
        for (index, (node, is_background)) in statements.iter().enumerate() {
            if *is_background {
                in_background.push((*node, self.options, self.is_trapped));
                continue;
            }
            let tail = match statements.get(index + 1) {
                None => place.tail,
                Some((next, _)) => self.actions.acts_on_code(*next, place),
            };
            self.statement(*node, place.with_tail(tail));
        }
        let end = statements.last().map_or(0, |(node, _)| node.end_byte());
        self.statements_in_background(in_background, end, place);
    }

    /// Visits the statements that run in the background, with the options and the trap of their places. The others were visited
    /// before, because one of them may wait for these and pass on their failure.
    fn statements_in_background(
        &mut self,
        statements: Vec<(Node<'t>, ShellOptions, bool)>,
        end: usize,
        place: Place,
    ) {
        let Some((first, ..)) = statements.first() else { return };
        let passes_on = |at: &&usize| self.found.get(at).is_some_and(|found| !found.is_hidden);
        let last_wait = self.waits.range(first.end_byte()..end).rev().find(passes_on).copied();
        let after = (self.options, self.is_trapped);
        for (node, options, is_trapped) in statements {
            (self.options, self.is_trapped) = (options, is_trapped);
            let own = place.in_subshell(last_wait.is_some_and(|at| at >= node.end_byte()));
            self.statement(node, Place { is_background: true, ..own });
        }
        (self.options, self.is_trapped) = after;
    }

    fn statement(&mut self, node: Node<'t>, place: Place) {
        self.visits += 1;
        if place.depth > MAX_DEPTH || self.visits > MAX_VISITS {
            self.is_too_deep = true;
            self.add(node, place.lost(), false);
            return;
        }
        let place = Place { depth: place.depth + 1, ..place };
        match node.kind() {
            "list" => self.list(node, place),
            "pipeline" => self.pipeline(node, place),
            "subshell" => {
                let (options, is_trapped) = (self.options, self.is_trapped);
                let own = place.in_subshell(self.passes(place));
                self.statements(named_and_background(node), own);
                (self.options, self.is_trapped) = (options, is_trapped);
            }
            "if_statement" => self.if_statement(node, place),
            "while_statement" => {
                let (conditions, bodies): (Vec<_>, Vec<_>) =
                    named_children(node).partition(|child| child.kind() != "do_group");
                let conditions = conditions.into_iter().map(|node| (node, false)).collect();
                self.statements(conditions, place.condition(false));
                for body in bodies {
                    self.statements(named_and_background(body), place.with_tail(false));
                }
            }
            "for_statement" | "c_style_for_statement" => {
                let values = children(node).filter(|(_, field)| *field == Some("value"));
                let values: Vec<_> = values.map(|(value, _)| value).collect();
                self.loops.push(Loop::of(values.iter().map(|value| self.source.of(*value))));
                for value in values {
                    self.substitutions(value, place.lost());
                }
                if let Some(body) = node.child_by_field_name("body") {
                    self.statements(named_and_background(body), place.with_tail(false));
                }
                self.loops.pop();
            }
            "case_statement" => {
                for item in named_children(node) {
                    if item.kind() == "case_item" {
                        let body: Vec<_> = children_with_background(item)
                            .filter(|(_, field, _)| *field != Some("value"))
                            .map(|(node, _, is_background)| (node, is_background))
                            .collect();
                        self.statements(body, place);
                    } else {
                        self.substitutions(item, place.lost());
                    }
                }
            }
            "negated_command" => {
                let inner = named_children(node).map(|child| (child, false)).collect();
                self.statements(inner, place.condition(false));
            }
            "redirected_statement" => self.redirected(node, place),
            "command" => self.command(node, node, place),
            "declaration_command" | "unset_command" | "test_command" => {
                self.add(node, place, false);
                self.substitutions(node, place.lost());
            }
            "variable_assignment" | "variable_assignments" => {
                self.add(node, place, true);
                // The assignment has the exit code of its last substitution, in which bash takes `-e` back.
                let options = std::mem::take(&mut self.options.errexit);
                let passes =
                    !self.is_trapped && (place.tail || (options && !place.ignores_errexit && place.exit));
                self.substitutions(node, place.in_subshell(passes));
                self.options.errexit = options;
            }
            "compound_statement" if self.source.of(node).starts_with("((") => {
                self.substitutions(node, place.lost());
            }
            "function_definition" | "comment" => {}
            "program" | "compound_statement" | "do_group" | "else_clause" | "ERROR" => {
                self.statements(named_and_background(node), place);
            }
            _ => self.substitutions(node, place.lost()),
        }
    }

    fn list(&mut self, node: Node<'t>, place: Place) {
        let operands: Vec<_> = named_children(node).collect();
        let is_or = children(node).any(|(child, _)| child.kind() == "||");
        let [left, right] = operands.as_slice() else {
            self.statements(named_and_background(node), place);
            return;
        };
        let left_tail = if is_or {
            self.actions.fails(*right, place.with_tail(self.passes(place)))
        } else {
            place.tail || self.ends_at_success(*right, node)
        };
        self.statement(*left, Place { ignores_errexit: true, ..place.with_tail(left_tail) });
        self.statement(*right, place);
    }

    /// Returns true if the shell ends in `node`, which follows a success, and fails behind `whole`: `a && exit 0; exit 1`.
    fn ends_at_success(&self, node: Node<'t>, whole: Node<'t>) -> bool {
        let ends = descendants(node, |_| true)
            .into_iter()
            .any(|node| node.kind() == "command" && ["exit", "return"].contains(&self.source.name(node)));
        ends && self.actions.last_failing_end.is_some_and(|at| at >= whole.end_byte())
    }

    fn pipeline(&mut self, node: Node<'t>, place: Place) {
        let elements: Vec<_> = named_children(node).collect();
        let passes = self.passes(place);
        let (options, is_trapped) = (self.options, self.is_trapped);
        for (index, element) in elements.iter().enumerate() {
            let is_last = index + 1 == elements.len();
            let own = passes && (is_last || options.pipefail);
            // A look at `PIPESTATUS` is one at each of them.
            let own = own || (!is_last && place.tail && self.looks_at_each(node));
            // A loop reads what the elements before it name.
            let head = elements.get(..index).unwrap_or_default();
            let head = if is_loop(*element) { head } else { &[] };
            let head = head.iter().flat_map(|before| self.source.of(*before).split_whitespace());
            self.loops.push(Loop::of(head));
            self.statement(*element, place.in_subshell(own));
            self.loops.pop();
            (self.options, self.is_trapped) = (options, is_trapped);
        }
    }

    fn looks_at_each(&self, pipeline: Node<'t>) -> bool {
        let next = pipeline.next_named_sibling().map_or("", |next| self.source.of(next));
        next.contains("PIPESTATUS") || next.contains("pipestatus")
    }

    fn if_statement(&mut self, node: Node<'t>, place: Place) {
        // The branches in their order: the conditions and the body of each; `else` has no condition.
        let mut branches: Vec<IfBranch<'t>> = vec![IfBranch::default()];
        let elif_and_else = |child: Node<'t>| matches!(child.kind(), "elif_clause" | "else_clause");
        branches[0].read(node);
        for clause in named_children(node).filter(|child| elif_and_else(*child)) {
            let mut branch = IfBranch::default();
            branch.read(clause);
            branches.push(branch);
        }
        for (index, branch) in branches.iter().enumerate() {
            let others = branches.get(index + 1..).unwrap_or_default();
            let count = branch.conditions.len();
            for (at, (condition, is_background)) in branch.conditions.iter().enumerate() {
                let tail = at + 1 == count && self.condition_fails(*condition, branch, others, node, place);
                self.condition(*condition, Place { is_background: *is_background, ..place.condition(tail) });
            }
            self.statements(branch.body.clone(), place);
        }
    }

    /// Returns true if the failure of a condition becomes that of the whole.
    fn condition_fails(
        &self,
        condition: Node<'t>,
        branch: &IfBranch<'t>,
        others: &[IfBranch<'t>],
        whole: Node<'t>,
        place: Place,
    ) -> bool {
        let place = place.with_tail(self.passes(place));
        let body_fails = || branch.body.iter().any(|(node, _)| self.actions.fails(*node, place));
        if condition.kind() == "negated_command" {
            return body_fails();
        }
        branch.body.iter().any(|(node, _)| self.ends_at_success(*node, whole))
            || self.others_fail(others, place)
    }

    /// Returns true if the branches that follow a failed condition pass its failure on, whatever they decide for themselves.
    fn others_fail(&self, others: &[IfBranch<'t>], place: Place) -> bool {
        for other in others {
            let fails = other.body.iter().any(|(node, _)| self.actions.fails(*node, place));
            let looks = other.conditions.iter().any(|(node, _)| self.actions.looks_at_code(*node));
            if other.conditions.is_empty() || fails == looks {
                return fails;
            }
        }
        false
    }

    fn condition(&mut self, node: Node<'t>, place: Place) {
        if node.kind() == "negated_command" {
            for inner in named_children(node) {
                self.statement(inner, place);
            }
        } else {
            self.statement(node, place);
        }
    }

    fn redirected(&mut self, node: Node<'t>, place: Place) {
        for (child, field) in children(node).filter(|(child, _)| child.is_named()) {
            match (field, child.kind()) {
                (Some("body"), "command") => self.command(child, node, place),
                (Some("body"), _) => {
                    let words = if is_loop(child) { self.redirected_words(node) } else { Vec::new() };
                    self.loops.push(Loop::of(words));
                    self.statement(child, place);
                    self.loops.pop();
                }
                (_, "heredoc_redirect") => {
                    for inner in named_children(child) {
                        self.statement(inner, place);
                    }
                }
                _ => self.substitutions(child, place.lost()),
            }
        }
    }

    /// Returns the words of the redirections of a statement, which name the files that a loop reads.
    fn redirected_words(&self, redirected: Node<'t>) -> Vec<&'s str> {
        let redirects = named_children(redirected).filter(|child| child.kind().ends_with("_redirect"));
        redirects.flat_map(|redirect| self.source.of(redirect).split_whitespace()).collect()
    }

    /// Visits a command. `whole` has its redirections as well.
    fn command(&mut self, node: Node<'t>, whole: Node<'t>, place: Place) {
        let (name, arguments) = (self.source.name(node), self.source.arguments(node));
        // The shell is the command from here on.
        let replaces_shell = name == "exec" && !arguments.is_empty();
        let own = if replaces_shell { place.with_tail(place.tail || place.exit) } else { place };
        self.substitutions(node, place.lost());
        match name {
            // The commands are those of the function.
            name if self.actions.functions.contains_key(name) => {
                self.call(name, &arguments, place);
                return;
            }
            "set" => self.options.apply(arguments.iter().copied()),
            "trap" => self.is_trapped |= self.hides_failures(&arguments),
            "wait" if !arguments.is_empty() => {
                self.waits.insert(whole.start_byte());
            }
            _ => {}
        }
        self.add(whole, own, false);
    }

    /// Visits the body of a function in the place of its call, unless an equal call was visited before.
    fn call(&mut self, name: &str, arguments: &[&'s str], place: Place) {
        let found = self.actions.functions.get_key_value(name).map(|(name, body)| (*name, *body));
        let Some((name, body)) = found.filter(|(name, _)| !self.calls.contains(name)) else { return };
        let passes = self.passes(place);
        // Only files are looked for in the words of a call and of the loops around it.
        let own = Loop::of(arguments.iter().copied());
        let files = self.loops.iter().chain([&own]).map(|around| &around.files);
        let files = files.filter(|files| !files.is_empty()).cloned().collect();
        let call = FunctionCall {
            name,
            files,
            flags: [passes, place.exit, place.ignores_errexit, place.is_background, self.is_trapped],
            options: self.options,
        };
        if let Some((options, is_trapped)) = self.visited_functions.get(&call) {
            (self.options, self.is_trapped) = (*options, *is_trapped);
            return;
        }
        self.loops.push(own);
        self.calls.push(name);
        self.statement(body, Place { tail: passes, returns: passes, is_condition: false, ..place });
        self.calls.pop();
        self.loops.pop();
        self.visited_functions.insert(call, (self.options, self.is_trapped));
    }

    /// Returns true if a trap with these words ends the shell with exit code 0: `trap 'exit 0' EXIT`.
    fn hides_failures(&self, arguments: &[&str]) -> bool {
        let Some((action, signals)) = arguments.split_first() else { return false };
        let is_of_failure = signals.iter().any(|signal| matches!(*signal, "EXIT" | "0" | "ERR"));
        let ends_well = |text: &str| {
            let mut words = text.split([';', '\n', '{', '}', '&', '|']).map(str::trim);
            words.any(|command| command == "exit 0")
        };
        let name = action.split_whitespace().next().unwrap_or_default();
        let body = self.actions.functions.get(name).map_or("", |body| self.source.of(*body));
        is_of_failure && (ends_well(action) || ends_well(body))
    }

    fn add(&mut self, node: Node<'t>, place: Place, is_assignment: bool) {
        let is_hidden = !self.passes(place);
        let found = self.found.entry(node.start_byte()).or_insert(FoundCommand {
            range: node.byte_range(),
            is_hidden: false,
            is_condition: false,
            is_background: false,
            is_assignment,
            loop_words: LoopWords::default(),
        });
        found.is_hidden |= is_hidden;
        found.is_condition |= place.is_condition;
        found.is_background |= place.is_background;
        found.loop_words.extend(&self.loops);
    }

    /// Visits the commands of `$(…)` and `<(…)` in a node.
    fn substitutions(&mut self, node: Node<'t>, place: Place) {
        let is_one = |node: Node<'t>| matches!(node.kind(), "command_substitution" | "process_substitution");
        let place = Place { depth: place.depth + 1, ..place };
        if place.depth > MAX_DEPTH {
            self.is_too_deep = true;
            return;
        }
        for inner in descendants(node, |node| !is_one(node)).into_iter().filter(|node| is_one(*node)) {
            let (options, is_trapped) = (self.options, self.is_trapped);
            self.statements(named_and_background(inner), place);
            (self.options, self.is_trapped) = (options, is_trapped);
        }
    }
}
