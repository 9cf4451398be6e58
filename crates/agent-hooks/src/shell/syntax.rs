//! Walks the syntax tree of a line, as the grammar of tree-sitter reads it.
//!
//! Every kind of node is named here. One that is not, and a node that the parser had to guess, makes the line one that
//! cannot be judged.

use super::arithmetic::{self, is_number};
use super::declarations;
use super::error::ShellError;
use super::expansions;
use super::shell_line::MAX_LINE_BYTES;
use super::visitor::{AssignedValue, LineVisitor};
use super::word::{ShellWord, evaluate};
use role_policy::Access;
use tree_sitter::{Node, Parser, Tree};

/// The deepest nesting of nodes. Each level is a few frames of this thread's stack.
const MAX_DEPTH: usize = 120;

/// The deepest nesting of brackets, quoted ones included.
const MAX_NESTING: usize = 200;

/// Returns how deeply the brackets of a line are nested at most.
fn nesting(line: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in line.bytes() {
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Returns a word or an operator that goes on behind the end of its line, which the grammar takes for two.
fn joined_word(line: &str) -> Option<String> {
    line.match_indices("\\\n").find_map(|(at, joint)| {
        let (before, after) = (line[..at].chars().next_back()?, line[at + joint.len()..].chars().next()?);
        let begins_word = after.is_alphanumeric() || "_./\"'-~".contains(after);
        let is_apart = before.is_whitespace()
            || after.is_whitespace()
            || (";&|({".contains(before) && begins_word)
            || (!"$<>&|;".contains(before) && ";&|)}".contains(after));
        (!is_apart).then(|| shorten(&line[at.saturating_sub(before.len_utf8())..]))
    })
}

/// The last character for which `isdigit` of C is defined.
const MAX_OF_C: char = '\u{ff}';

/// Returns a `{` behind which the scanner of the grammar would read a character that `isdigit` of C does not take.
///
/// tree-sitter-bash 0.25 gives `isdigit` the characters behind `{` and behind `{1..`. The C library looks them up in a
/// table of 256: one that is far behind its end is a segmentation fault.
fn unsafe_brace(line: &str) -> Option<String> {
    line.match_indices('{').find_map(|(at, brace)| {
        let behind = line[at + brace.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        let last =
            behind.strip_prefix("..").unwrap_or(behind).trim_start_matches(|c: char| c.is_ascii_digit());
        let is_unsafe = |text: &str| text.chars().next().is_some_and(|character| character > MAX_OF_C);
        (is_unsafe(behind) || is_unsafe(last)).then(|| shorten(&line[at..]))
    })
}

/// Returns the syntax tree of a text of bash. A part that the grammar does not take is an error node of the tree.
///
/// # Errors
/// The text is too long or nested too deeply for the parser, or has a character that the scanner of the grammar does not
/// survive.
pub fn syntax_tree(text: &str) -> Result<Tree, ShellError> {
    if text.len() > MAX_LINE_BYTES {
        return Err(ShellError::TooLong);
    }
    // Before the parser, whose time grows with the square of the nesting.
    if nesting(text) > MAX_NESTING {
        return Err(ShellError::TooDeep);
    }
    if let Some(near) = unsafe_brace(text) {
        return Err(ShellError::Syntax { near });
    }
    let mut parser = Parser::new();
    let unreadable = || ShellError::Syntax { near: shorten(text) };
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|_| unreadable())?;
    parser.parse(text, None).ok_or_else(unreadable)
}

/// Reads `line` into `visitor`.
pub(super) fn read_into(line: &str, visitor: &mut impl LineVisitor) -> Result<(), ShellError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(ShellError::TooLong);
    }
    if line.chars().any(|character| character.is_control() && !matches!(character, '\n' | '\t')) {
        return Err(ShellError::ControlCharacter);
    }
    if let Some(near) = joined_word(line) {
        return Err(ShellError::Syntax { near });
    }
    let tree = syntax_tree(line)?;
    Walk { source: line, visitor }
        .visit(tree.root_node(), Place { depth: 0, repeats: false, in_quotes: false })
}

/// The surroundings of a node.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// True in a loop or a function, whose commands may run several times, or later.
    repeats: bool,
    /// True between double quotes and in a here-document, where `'` is a character like any other.
    in_quotes: bool,
}

/// One simple command: its words and what stands beside them.
#[derive(Default)]
struct SimpleCommand {
    assigned: Vec<(String, AssignedValue)>,
    words: Vec<ShellWord>,
    /// True if the redirections belong to a block, which takes no words.
    is_block: bool,
}

struct Walk<'a, V> {
    source: &'a str,
    visitor: &'a mut V,
}

impl<V: LineVisitor> Walk<'_, V> {
    fn text(&self, node: Node<'_>) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn not_understood(&self, node: Node<'_>) -> ShellError {
        ShellError::Syntax { near: shorten(self.text(node)) }
    }

    fn visit(&mut self, node: Node<'_>, place: Place) -> Result<(), ShellError> {
        if place.depth > MAX_DEPTH {
            return Err(ShellError::TooDeep);
        }
        if node.is_error() || node.is_missing() {
            return Err(self.not_understood(node));
        }
        match node.kind() {
            "command" | "redirected_statement" => {
                let mut command = SimpleCommand::default();
                self.collect(node, &mut command, place)?;
                self.finish(command, node, place)
            }
            "variable_assignment" => {
                let mut command = SimpleCommand::default();
                self.assignment(node, &mut command, place)?;
                self.finish(command, node, place)
            }
            "file_redirect" | "heredoc_redirect" | "herestring_redirect" => {
                let mut command = SimpleCommand::default();
                self.redirect(node, &mut command, place)?;
                self.finish(command, node, place)
            }
            "declaration_command" | "unset_command" => self.declaration(node, place),
            "while_statement" | "c_style_for_statement" | "function_definition" | "for_statement" => {
                if node.kind() == "c_style_for_statement" {
                    self.loop_header(node)?;
                }
                if let Some(variable) = node.child_by_field_name("variable") {
                    let values = all_children(node).filter(|(_, field)| *field == Some("value"));
                    let values: Vec<Node<'_>> = values.map(|(value, _)| value).collect();
                    let value = match values.as_slice() {
                        // The words of the line's caller.
                        [] => AssignedValue::Text,
                        values if values.iter().all(|value| self.is_number(*value)) => AssignedValue::Number,
                        values => {
                            let home = self.visitor.home();
                            let word = |value: &Node<'_>| evaluate(*value, self.source, home);
                            AssignedValue::Words(values.iter().map(word).collect())
                        }
                    };
                    let name = self.text(variable).to_owned();
                    self.visitor.assign_in_shell(name, value);
                }
                self.children(node, Place { repeats: true, ..place })
            }
            // The grammar does not undo the backslashes between backticks.
            "command_substitution" if self.text(node).starts_with('`') && self.text(node).contains('\\') => {
                Err(self.not_understood(node))
            }
            // Bash computes it if it can be computed.
            "command_substitution" if self.text(node).starts_with("$((") => Err(self.not_understood(node)),
            "command_substitution" | "process_substitution" => {
                self.children(node, Place { in_quotes: false, ..place })
            }
            "string" | "translated_string" => self.children(node, Place { in_quotes: true, ..place }),
            "heredoc_body" => {
                // The grammar leaves some bodies whole.
                let mut at = node.start_byte();
                for child in named_children(node) {
                    if has_expansion(self.source.get(at..child.start_byte()).unwrap_or_default()) {
                        return Err(self.not_understood(node));
                    }
                    at = child.end_byte();
                }
                if has_expansion(self.source.get(at..node.end_byte()).unwrap_or_default()) {
                    return Err(self.not_understood(node));
                }
                self.children(node, Place { in_quotes: true, ..place })
            }
            "arithmetic_expansion" => {
                let text = self.text(node).to_owned();
                let inner = text.strip_prefix("$((").and_then(|text| text.strip_suffix("))"));
                let inner = inner.or_else(|| text.strip_prefix("$[").and_then(|text| text.strip_suffix(']')));
                arithmetic::read(inner.ok_or_else(|| self.not_understood(node))?, self.visitor);
                self.children(node, place)
            }
            "subscript" => {
                let text = self.text(node).to_owned();
                let index = text.split_once('[').and_then(|(_, rest)| rest.strip_suffix(']'));
                let index = index.ok_or_else(|| self.not_understood(node))?;
                if !matches!(index, "@" | "*") {
                    arithmetic::read(index, self.visitor);
                }
                self.children(node, place)
            }
            "expansion" => {
                self.expansion(node)?;
                self.children(node, place)
            }
            "test_command" | "compound_statement" => {
                let text = self.text(node).to_owned();
                expansions::read_condition(&text, self.visitor);
                self.children(node, place)
            }
            "array" => {
                let text = self.text(node).to_owned();
                expansions::read_array(&text, self.visitor);
                self.children(node, place)
            }
            "raw_string" | "ansi_c_string" if place.in_quotes => Err(self.not_understood(node)),
            "ansi_c_string" if !is_whole_ansi_string(self.text(node)) => Err(self.not_understood(node)),
            "program"
            | "list"
            | "pipeline"
            | "subshell"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "do_group"
            | "case_statement"
            | "case_item"
            | "negated_command"
            | "concatenation"
            | "postfix_expression"
            | "ternary_expression"
            | "simple_expansion"
            | "binary_expression"
            | "unary_expression"
            | "parenthesized_expression"
            | "brace_expression"
            | "variable_assignments"
            | "command_name" => self.children(node, place),
            "raw_string"
            | "comment"
            | "ansi_c_string"
            | "file_descriptor"
            | "heredoc_start"
            | "heredoc_end"
            | "special_variable_name"
            | "variable_name"
            | "test_operator"
            | "number" => Ok(()),
            "word" | "regex" | "extglob_pattern" | "string_content" | "heredoc_content"
                if !has_expansion(self.text(node)) =>
            {
                Ok(())
            }
            _ => Err(self.not_understood(node)),
        }
    }

    fn children(&mut self, node: Node<'_>, place: Place) -> Result<(), ShellError> {
        for child in named_children(node) {
            self.visit(child, Place { depth: place.depth + 1, ..place })?;
        }
        // An anonymous node may be missing too: a quote or a bracket that the parser made up.
        match all_children(node).find(|(child, _)| child.is_missing() || child.is_error()) {
            Some((child, _)) => Err(self.not_understood(child)),
            None => Ok(()),
        }
    }

    /// Returns true if the value at `node` is a number, or a range of numbers.
    fn is_number(&self, node: Node<'_>) -> bool {
        match node.kind() {
            "arithmetic_expansion" => true,
            "brace_expression" => named_children(node).all(|end| end.kind() == "number"),
            _ => is_number(self.text(node)),
        }
    }

    /// Reads the expressions of `for ((…))`.
    fn loop_header(&mut self, node: Node<'_>) -> Result<(), ShellError> {
        let body = node.child_by_field_name("body").ok_or_else(|| self.not_understood(node))?;
        let header = self.source.get(node.start_byte()..body.start_byte()).unwrap_or_default();
        let inner = header.split_once("((").and_then(|(_, rest)| rest.rsplit_once("))"));
        let (inner, _) = inner.ok_or_else(|| self.not_understood(node))?;
        arithmetic::read(inner, self.visitor);
        Ok(())
    }

    /// Judges the operators of `${…}`.
    fn expansion(&mut self, node: Node<'_>) -> Result<(), ShellError> {
        let text = self.text(node).to_owned();
        expansions::read_parameter(&text, self.visitor).ok_or_else(|| self.not_understood(node))?;
        let assigns = all_children(node).any(|(child, _)| matches!(child.kind(), ":=" | "="));
        if assigns && let Some(name) = named_children(node).find(|child| child.kind() == "variable_name") {
            let name = self.text(name).to_owned();
            self.visitor.assign_in_shell(name, AssignedValue::Text);
        }
        Ok(())
    }

    /// Collects the words, the assignments and the redirections of a simple command, in the order of the line.
    fn collect(
        &mut self,
        node: Node<'_>,
        command: &mut SimpleCommand,
        place: Place,
    ) -> Result<(), ShellError> {
        let below = Place { depth: place.depth + 1, ..place };
        for (child, field) in all_children(node) {
            match child.kind() {
                _ if child.is_error() || child.is_missing() => return Err(self.not_understood(child)),
                "variable_assignment" if command.words.is_empty() => {
                    self.assignment(child, command, below)?;
                }
                "variable_assignments" => self.collect(child, command, below)?,
                "command" if node.kind() == "redirected_statement" => self.collect(child, command, below)?,
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" => {
                    self.redirect(child, command, below)?;
                }
                "comment" => {}
                "command_name" => self.word(child, command, below)?,
                _ if node.kind() == "command" && field == Some("argument") => {
                    self.word(child, command, below)?;
                }
                // A block with redirections.
                _ if node.kind() == "redirected_statement" && child.is_named() => {
                    command.is_block = true;
                    self.visit(child, below)?;
                }
                _ => return Err(self.not_understood(child)),
            }
        }
        Ok(())
    }

    fn word(&mut self, node: Node<'_>, command: &mut SimpleCommand, place: Place) -> Result<(), ShellError> {
        if node.is_named() {
            self.visit(node, place)?;
            command.words.push(evaluate(node, self.source, self.visitor.home()));
        } else {
            // `==`, `=~` and a bare `$` are plain words here.
            command.words.push(ShellWord::literal(self.text(node)));
        }
        Ok(())
    }

    fn assignment(
        &mut self,
        node: Node<'_>,
        command: &mut SimpleCommand,
        place: Place,
    ) -> Result<(), ShellError> {
        let Some(name) = node.child_by_field_name("name") else { return Err(self.not_understood(node)) };
        let text = self.text(name);
        let value = match node.child_by_field_name("value") {
            // Elements are not told apart: any of them could be text.
            _ if name.kind() != "variable_name" => AssignedValue::List,
            Some(value) if value.kind() == "array" => AssignedValue::List,
            Some(value) if self.is_number(value) => AssignedValue::Number,
            Some(_) if all_children(node).any(|(child, _)| child.kind() == "+=") => AssignedValue::Text,
            Some(value) => AssignedValue::Words(vec![evaluate(value, self.source, self.visitor.home())]),
            None => AssignedValue::Number,
        };
        command.assigned.push((text.split('[').next().unwrap_or(text).to_owned(), value));
        self.children(node, place)
    }

    /// Reads a redirection. The grammar takes every word behind `> file` for a destination; only the first is one.
    fn redirect(
        &mut self,
        node: Node<'_>,
        command: &mut SimpleCommand,
        place: Place,
    ) -> Result<(), ShellError> {
        // `{name[index]}> file` names a variable for the descriptor.
        let before = self.source.get(..node.start_byte()).unwrap_or_default();
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        if word.ends_with("]}") && !word.contains("${") {
            return Err(self.not_understood(node));
        }
        // Bash joins lines before it looks for the end of such a body.
        let is_heredoc = node.kind() == "heredoc_redirect";
        if is_heredoc && !self.is_quoted_heredoc(node) && self.text(node).contains("\\\n") {
            return Err(self.not_understood(node));
        }
        let below = Place { depth: place.depth + 1, ..place };
        let mut operator = String::new();
        let mut has_target = false;
        for (child, field) in all_children(node) {
            if child.is_error() || child.is_missing() {
                return Err(self.not_understood(child));
            }
            if !child.is_named() && field.is_none() {
                child.kind().clone_into(&mut operator);
                continue;
            }
            match (node.kind(), field, child.kind()) {
                (_, _, "file_descriptor" | "heredoc_start" | "heredoc_end")
                | ("heredoc_redirect", Some("operator"), _) => {}
                ("heredoc_redirect", _, "heredoc_body") if self.is_quoted_heredoc(node) => {}
                ("heredoc_redirect", Some("redirect"), _) => self.redirect(child, command, below)?,
                ("heredoc_redirect", Some("argument"), _) => self.word(child, command, below)?,
                ("heredoc_redirect", ..) => self.visit(child, below)?,
                ("file_redirect", Some("destination"), _) if operator.ends_with("&-") || has_target => {
                    self.word(child, command, below)?;
                }
                ("file_redirect", Some("destination"), "process_substitution") => {
                    has_target = true;
                    self.visit(child, below)?;
                }
                ("file_redirect", Some("destination"), _) => {
                    has_target = true;
                    self.visit(child, below)?;
                    let target = evaluate(child, self.source, self.visitor.home());
                    self.target(&operator, &target)?;
                }
                ("herestring_redirect", ..) if !has_target => {
                    has_target = true;
                    self.visit(child, below)?;
                }
                ("herestring_redirect", ..) => self.word(child, command, below)?,
                _ => return Err(self.not_understood(child)),
            }
        }
        Ok(())
    }

    /// Returns true if the body of a here-document is taken as it stands.
    fn is_quoted_heredoc(&self, node: Node<'_>) -> bool {
        let start = named_children(node).find(|child| child.kind() == "heredoc_start");
        start.is_some_and(|start| self.text(start).contains(['\'', '"', '\\']))
    }

    fn target(&mut self, operator: &str, target: &ShellWord) -> Result<(), ShellError> {
        let copies = matches!(operator, ">&" | "<&");
        let Some(path) = target.value() else {
            return Err(ShellError::DynamicPath { word: shorten(&target.text) });
        };
        // `2>&1` and `>&-` name no file.
        if copies && (path == "-" || path.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit())) {
            return Ok(());
        }
        let access = match operator {
            "<" | "<&" => Access::Read,
            _ => Access::Write,
        };
        self.visitor.file(path, access);
        Ok(())
    }

    /// Reads `export`, `declare`, `local`, `readonly`, `typeset` and `unset`.
    fn declaration(&mut self, node: Node<'_>, place: Place) -> Result<(), ShellError> {
        let below = Place { depth: place.depth + 1, ..place };
        let mut is_list = false;
        for (child, _) in all_children(node) {
            match child.kind() {
                "variable_assignment" => {
                    let mut command = SimpleCommand::default();
                    self.assignment(child, &mut command, below)?;
                    // Text in brackets is a list, whose elements are expanded, if the variable is one.
                    let value = child.child_by_field_name("value").filter(|value| value.kind() != "array");
                    let value = value.map(|value| evaluate(value, self.source, self.visitor.home()));
                    let is_literal = value.as_ref().is_none_or(|word| word.is_literal);
                    if value.is_some_and(|word| word.value().map_or(is_list, |text| text.starts_with('('))) {
                        self.visitor.evaluates_text();
                    }
                    for (name, value) in command.assigned {
                        let value = match value {
                            AssignedValue::Words(_) | AssignedValue::Text if !is_literal => {
                                AssignedValue::DeclaredText
                            }
                            value => value,
                        };
                        self.visitor.assign_for_programs(name, value);
                    }
                }
                "variable_name" => {
                    let name = self.text(child).to_owned();
                    self.visitor.assign_for_programs(name, AssignedValue::Number);
                }
                _ if !child.is_named() && !child.is_missing() => {}
                _ => {
                    self.visit(child, below)?;
                    let word = evaluate(child, self.source, self.visitor.home());
                    is_list |=
                        word.value().is_some_and(|text| text.starts_with('-') && text.contains(['a', 'A']));
                    declarations::read_word(self.visitor, &word);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, command: SimpleCommand, node: Node<'_>, place: Place) -> Result<(), ShellError> {
        if command.words.is_empty() {
            for (name, value) in command.assigned {
                self.visitor.assign_in_shell(name, value);
            }
            return Ok(());
        }
        // A block with words behind its redirections is nothing that bash would accept.
        if command.is_block {
            return Err(self.not_understood(node));
        }
        for (name, value) in command.assigned {
            self.visitor.assign_for_programs(name, value);
        }
        if place.repeats {
            self.visitor.repeated(|visitor| visitor.command(command.words))
        } else {
            self.visitor.command(command.words)
        }
    }
}

fn all_children(node: Node<'_>) -> impl Iterator<Item = (Node<'_>, Option<&'static str>)> {
    (0..node.child_count()).filter_map(move |index| {
        let index = u32::try_from(index).ok()?;
        Some((node.child(index)?, node.field_name_for_child(index)))
    })
}

fn named_children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    all_children(node).map(|(child, _)| child).filter(Node::is_named)
}

/// Returns true if `text` is one `$'…'` as bash reads it: its first quote that no backslash stands before is its last character.
fn is_whole_ansi_string(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("$'") else { return false };
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            // `\c` takes characters in ways of its own.
            '\\' if characters.next().is_none_or(|escaped| escaped == 'c') => return false,
            '\'' => return characters.next().is_none(),
            _ => {}
        }
    }
    false
}

/// Returns true if text that the parser took for plain has something in it that bash would run.
fn has_expansion(text: &str) -> bool {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '`' => return true,
            '$' if characters.peek().is_some_and(|next| "({".contains(*next)) => return true,
            _ => {}
        }
    }
    false
}

/// Returns the beginning of `text`, for a message.
pub(super) fn shorten(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
