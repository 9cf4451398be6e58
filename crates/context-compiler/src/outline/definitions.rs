//! The definitions in a file with their lines, nested as they stand in it.

use super::grammar::OutlineNodeRule;
use super::language::Language;
use super::nodes::last_row;
use super::parse::{MAX_DEPTH, MAX_TEXT_BYTES, parse};
use super::symbol::{Definition, FileDefinitions, SymbolKind};
use tree_sitter::Node;

/// The most bytes of a signature that are kept.
const MAX_SIGNATURE_BYTES: usize = 160;
/// The length in lines above which a function is told with the functions in it: its one line would say too little.
const LONG_FUNCTION_LINES: usize = 60;
/// The fields in which grammars keep the part of a definition that is no signature.
const BODY_FIELDS: [&str; 2] = ["body", "accessors"];

/// Returns the definitions in `text`, or `None` if it is too long or takes too many steps to parse.
pub(super) fn definitions(language: Language, text: &str) -> Option<FileDefinitions> {
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let tree = parse(language, text)?;
    let mut collector = OutlineDefinitionCollector { language, text, definitions: Vec::new() };
    collector.visit_children(tree.root_node(), 0, false, 0);
    let has_errors = tree.root_node().has_error();
    Some(FileDefinitions { definitions: collector.definitions, has_errors })
}

struct OutlineDefinitionCollector<'t> {
    language: Language,
    text: &'t str,
    definitions: Vec<Definition>,
}

impl OutlineDefinitionCollector<'_> {
    /// Applies the rules to the children of `node`: `depth` counts definitions, `level` nodes.
    fn visit_children(&mut self, node: Node<'_>, depth: usize, in_type: bool, level: usize) {
        if level >= MAX_DEPTH {
            return;
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            // The parser inserts a missing node to recover from an error; it has no text.
            if child.is_missing() {
                continue;
            }
            match self.language.rule(child.kind()) {
                Some(OutlineNodeRule::Function(kind)) => {
                    let kind =
                        if in_type && kind == SymbolKind::Function { SymbolKind::Method } else { kind };
                    self.visit_function(child, kind, depth, level);
                }
                Some(OutlineNodeRule::Container(kind)) => self.visit_container(child, kind, depth, level),
                Some(OutlineNodeRule::Through) => self.visit_children(child, depth, in_type, level + 1),
                Some(OutlineNodeRule::Leaf(kind)) => self.visit_leaf(child, kind, depth, in_type, level),
                // A file that is being written has errors, and definitions among them.
                None if child.is_error() => self.visit_children(child, depth, in_type, level + 1),
                Some(OutlineNodeRule::Drop | OutlineNodeRule::Comment) | None => {}
            }
        }
    }

    /// Records a function, and those that are defined within it if it is long.
    fn visit_function(&mut self, node: Node<'_>, kind: SymbolKind, depth: usize, level: usize) {
        self.record(node, kind, depth);
        if lines_of(node) > LONG_FUNCTION_LINES {
            self.visit_nested_functions(node, depth + 1, level + 1);
        }
    }

    /// Records the functions and types that are defined within a function, without its variables.
    fn visit_nested_functions(&mut self, node: Node<'_>, depth: usize, level: usize) {
        if level >= MAX_DEPTH {
            return;
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor).filter(|child| !child.is_missing()) {
            match self.language.rule(child.kind()) {
                Some(OutlineNodeRule::Function(kind)) => self.visit_function(child, kind, depth, level),
                Some(OutlineNodeRule::Container(kind)) => self.visit_container(child, kind, depth, level),
                Some(OutlineNodeRule::Comment) => {}
                _ => self.visit_nested_functions(child, depth, level + 1),
            }
        }
    }

    fn visit_container(&mut self, node: Node<'_>, kind: SymbolKind, depth: usize, level: usize) {
        self.record(node, kind, depth);
        if let Some(body) = node.child_by_field_name("body") {
            let in_type = kind == SymbolKind::Type || node.kind() == "impl_item";
            self.visit_children(body, depth + 1, in_type, level + 1);
        }
    }

    fn visit_leaf(&mut self, node: Node<'_>, kind: SymbolKind, depth: usize, in_type: bool, level: usize) {
        if node.kind() == "expression_statement" {
            return match node.named_child(0) {
                // A namespace of TypeScript.
                Some(inner) if inner.kind() == "internal_module" => {
                    self.visit_container(inner, SymbolKind::Module, depth, level);
                }
                Some(inner) if self.language == Language::Python && is_named_assignment(inner) => {
                    self.record(node, kind, depth);
                }
                _ => {}
            };
        }
        // A class or a struct that is declared together with a name.
        let nested =
            (0..node.named_child_count()).filter_map(|index| node.named_child(u32::try_from(index).ok()?));
        let container = nested
            .into_iter()
            .find(|child| matches!(self.language.rule(child.kind()), Some(OutlineNodeRule::Container(_))));
        match container {
            Some(inner) if inner.child_by_field_name("body").is_some() => {
                self.visit_container(inner, SymbolKind::Type, depth, level);
            }
            _ => {
                let kind = if in_type && kind == SymbolKind::Function { SymbolKind::Method } else { kind };
                self.record(node, kind, depth);
                // The members of an interface.
                if let Some(body) = node.child_by_field_name("body") {
                    self.visit_children(body, depth + 1, true, level + 1);
                }
            }
        }
    }

    fn record(&mut self, node: Node<'_>, kind: SymbolKind, depth: usize) {
        let body = BODY_FIELDS.iter().find_map(|field| node.child_by_field_name(field));
        let end = body.map_or(node.end_byte(), |body| body.start_byte());
        let text = self.text.get(node.start_byte()..end).unwrap_or_default();
        let signature = signature(text, body.is_some());
        if signature.is_empty() {
            return;
        }
        let first_line = node.start_position().row + 1;
        let last_line = (last_row(node) + 1).max(first_line);
        self.definitions.push(Definition { signature, kind, first_line, last_line, depth });
    }
}

/// Returns the number of lines that a node takes.
fn lines_of(node: Node<'_>) -> usize {
    (last_row(node) + 1).saturating_sub(node.start_position().row)
}

fn is_named_assignment(node: Node<'_>) -> bool {
    node.kind() == "assignment"
        && node.child_by_field_name("left").is_some_and(|left| left.kind() == "identifier")
}

/// Returns the text before a body on one line; without a body, the first line.
fn signature(text: &str, has_body: bool) -> String {
    let text = if has_body { text } else { text.lines().next().unwrap_or_default() };
    let mut signature = String::with_capacity(text.len().min(MAX_SIGNATURE_BYTES + 4));
    for word in text.split_whitespace() {
        if !signature.is_empty() {
            signature.push(' ');
        }
        signature.push_str(word);
        if signature.len() > MAX_SIGNATURE_BYTES {
            // `floor_char_boundary` is newer than the oldest Rust that this crate supports.
            let end = (0..=MAX_SIGNATURE_BYTES).rev().find(|end| signature.is_char_boundary(*end));
            signature.truncate(end.unwrap_or_default());
            signature.push('…');
            return signature;
        }
    }
    signature
        .trim_end_matches(|c: char| matches!(c, '{' | '=' | ':' | ';' | ',') || c.is_whitespace())
        .to_owned()
}
