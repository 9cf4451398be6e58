//! Extraction of an outline from a syntax tree.

use super::cuts::{OutlineCut, apply_cuts};
use super::grammar::OutlineNodeRule;
use super::language::Language;
use super::nodes::{contains_definition, docstring, is_c_function, last_row, name_of};
use super::parse::{MAX_DEPTH, MAX_TEXT_BYTES, parse};
use super::symbol::{CodeOutline, CodeSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::ops::Range;
use tree_sitter::{Node, Tree};

/// The most lines of documentation that are kept.
const MAX_DOC_LINES: usize = 4;
/// A value of more bytes is left out.
const MAX_VALUE_BYTES: usize = 80;
/// The shortest identifier that is counted, in bytes. Shorter ones tell nothing.
const MIN_IDENTIFIER_BYTES: usize = 3;
/// The longest name of a symbol.
const MAX_NAME_BYTES: usize = 200;

/// Returns the outline of `text`, or `None` if it is too long or takes too many steps to parse.
pub(super) fn extract(language: Language, text: &str) -> Option<CodeOutline> {
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let tree = parse(language, text)?;
    let mut extractor = OutlineExtractor { language, text, cuts: Vec::new(), symbols: Vec::new() };
    extractor.visit_children(
        tree.root_node(),
        OutlineDefinitionScope { exported: true, depth: 0, in_type: false },
    );
    let OutlineExtractor { mut cuts, symbols, .. } = extractor;
    let identifiers = count_identifiers(&tree, text);
    // The outer one of two cuts with one start comes first, as `apply_cuts` requires.
    cuts.sort_by_key(|cut| (cut.range.start, std::cmp::Reverse(cut.range.end)));
    let shortened = apply_cuts(text, &cuts);
    Some(CodeOutline {
        language,
        complete: shortened.len() == text.len(),
        text: shortened,
        symbols,
        identifiers,
    })
}

/// Counts the identifiers of `tree`, in byte order.
fn count_identifiers(tree: &Tree, text: &str) -> Vec<(String, u32)> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut cursor = tree.walk();
    // Without recursion, because generated code can nest without end.
    loop {
        let node = cursor.node();
        if node.child_count() == 0 && node.kind().ends_with("identifier") {
            let name = text.get(node.byte_range()).unwrap_or_default();
            if (MIN_IDENTIFIER_BYTES..=MAX_NAME_BYTES).contains(&name.len()) {
                *counts.entry(name).or_default() += 1;
            }
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
            }
        }
    }
}

/// Returns `text` without the bodies and comments that an outline leaves out, except for the first `restored` bodies.
/// With more of them, everything is there that is there with fewer.
pub(super) fn extract_with_bodies(
    language: Language,
    text: &str,
    restored: usize,
) -> Option<(String, usize)> {
    let tree = parse(language, text)?;
    let mut extractor = OutlineExtractor { language, text, cuts: Vec::new(), symbols: Vec::new() };
    let scope = OutlineDefinitionScope { exported: true, depth: 0, in_type: false };
    extractor.visit_children(tree.root_node(), scope);
    let mut cuts = extractor.cuts;
    cuts.sort_by_key(|cut| (cut.range.start, std::cmp::Reverse(cut.range.end)));
    let total = cuts.len();
    cuts.drain(..restored.min(total));
    Some((apply_cuts(text, &cuts), total))
}

/// The surroundings of a definition.
#[derive(Clone, Copy)]
struct OutlineDefinitionScope {
    exported: bool,
    depth: usize,
    in_type: bool,
}

/// Collects the symbols of a file and the ranges to cut.
struct OutlineExtractor<'t> {
    language: Language,
    text: &'t str,
    cuts: Vec<OutlineCut>,
    symbols: Vec<CodeSymbol>,
}

impl<'t> OutlineExtractor<'t> {
    fn text_of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Applies the rules to the children of `node`.
    fn visit_children(&mut self, node: Node<'_>, scope: OutlineDefinitionScope) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let (mut index, mut is_first) = (0, true);
        while let Some(&child) = children.get(index) {
            match self.language.rule(child.kind()) {
                Some(OutlineNodeRule::Comment) => {
                    let run = self.comment_run(&children[index..]);
                    self.visit_comments(&children[index..index + run], children.get(index + run).copied());
                    index += run;
                    continue;
                }
                // The parser inserts a missing node to recover from an error; it has no text.
                Some(rule) if !child.is_missing() => self.visit(child, rule, scope, is_first),
                _ if self.is_irrelevant_attribute(child) => self.cut_lines(child.byte_range()),
                _ => {}
            }
            is_first = false;
            index += 1;
        }
    }

    /// Applies `rule` to one node.
    fn visit(
        &mut self,
        node: Node<'_>,
        rule: OutlineNodeRule,
        scope: OutlineDefinitionScope,
        is_first: bool,
    ) {
        let exported = scope.exported && self.is_exported(node, scope);
        let broken = node.has_error();
        match rule {
            OutlineNodeRule::Drop => {
                // A re-export is a part of the interface.
                if !broken && !self.text_of(node).starts_with("pub ") {
                    self.cut_lines(node.byte_range());
                }
            }
            OutlineNodeRule::Function(kind) => {
                let kind =
                    if scope.in_type && kind == SymbolKind::Function { SymbolKind::Method } else { kind };
                self.record_names(node, kind, exported);
                if !broken {
                    self.cut_body(node);
                }
            }
            OutlineNodeRule::Container(kind) => {
                let is_impl = node.kind() == "impl_item";
                if !is_impl {
                    self.record_names(node, kind, exported);
                }
                let Some(body) = node.child_by_field_name("body") else { return };
                let name = node.child_by_field_name("name").map_or("", |name| self.text_of(name));
                // Unit tests are no part of the interface.
                if self.language == Language::Rust && matches!(name, "tests" | "test") && !broken {
                    return self.cut_to_placeholder(body.byte_range());
                }
                let in_type = is_impl || kind == SymbolKind::Type;
                // The members of a trait or an interface are as visible as itself; in an `impl` each one has its own
                // visibility.
                let exported = exported || is_impl || kind == SymbolKind::Module;
                if scope.depth < MAX_DEPTH {
                    self.shorten_docstring(body);
                    self.visit_children(
                        body,
                        OutlineDefinitionScope { exported, depth: scope.depth + 1, in_type },
                    );
                }
            }
            OutlineNodeRule::Through => {
                if self.language == Language::Python && !broken && !contains_definition(node, 0) {
                    // Statements, such as those of a script.
                    self.cut_lines(node.byte_range());
                } else if scope.depth < MAX_DEPTH {
                    let exports = node.kind() == "export_statement";
                    let exported = scope.exported && (exports || !self.exports_are_marked() || scope.in_type);
                    let depth = scope.depth + 1;
                    self.visit_children(
                        node,
                        OutlineDefinitionScope { exported: exported || scope.exported, depth, ..scope },
                    );
                }
            }
            OutlineNodeRule::Leaf(kind) => self.visit_leaf(node, kind, exported, scope.in_type, is_first),
            OutlineNodeRule::Comment => {}
        }
    }

    fn visit_leaf(
        &mut self,
        node: Node<'_>,
        kind: SymbolKind,
        exported: bool,
        in_type: bool,
        is_first: bool,
    ) {
        let broken = node.has_error();
        if node.kind() == "expression_statement" {
            let inner = node.named_child(0);
            return match inner.map(|inner| (inner.kind(), inner)) {
                // A namespace of TypeScript.
                Some(("internal_module", module)) => {
                    let scope = OutlineDefinitionScope { exported, depth: 1, in_type: false };
                    self.visit(module, OutlineNodeRule::Container(SymbolKind::Module), scope, false);
                }
                Some(("assignment", assignment)) if self.language == Language::Python => {
                    if let Some(left) =
                        assignment.child_by_field_name("left").filter(|left| left.kind() == "identifier")
                    {
                        self.record_symbol(left, kind, exported);
                    }
                    if !broken {
                        self.shorten_values(assignment, 0);
                    }
                }
                // The docstring of a module.
                Some(("string", string)) if is_first && self.language == Language::Python => {
                    self.shorten_doc_block(string);
                }
                _ if broken => {}
                Some(("assignment_expression", assignment)) => self.shorten_values(assignment, 0),
                _ => self.cut_lines(node.byte_range()),
            };
        }
        match node.kind() {
            // A field of C means nothing without its struct.
            "field_declaration" if self.language.is_c_family() && !is_c_function(node) => {}
            "declaration" if is_c_function(node) => self.record_names(node, SymbolKind::Function, exported),
            _ if in_type && (kind == SymbolKind::Function || is_c_function(node)) => {
                self.record_names(node, SymbolKind::Method, exported);
            }
            _ => self.record_names(node, kind, exported),
        }
        if !broken {
            self.shorten_values(node, 0);
        }
    }

    /// Leaves out the bodies and the long values in `node`.
    fn shorten_values(&mut self, node: Node<'_>, depth: usize) {
        for index in 0..node.child_count() {
            let Ok(index) = u32::try_from(index) else { return };
            let Some(child) = node.child(index) else { continue };
            match node.field_name_for_child(index) {
                Some("value" | "right" | "default_value") => match child.child_by_field_name("body") {
                    Some(body) if body.kind() != "class_body" => self.cut_to_placeholder(body.byte_range()),
                    _ if child.kind() == "token_tree" => self.cut_to_placeholder(child.byte_range()),
                    _ if child.byte_range().len() > MAX_VALUE_BYTES => {
                        self.cuts.push(OutlineCut { range: child.byte_range(), placeholder: "…" });
                    }
                    _ => {}
                },
                _ if child.kind() == "initializer_list" && child.byte_range().len() > MAX_VALUE_BYTES => {
                    self.cut_to_placeholder(child.byte_range());
                }
                _ if depth < 4 && child.is_named() => match self.language.rule(child.kind()) {
                    // A struct with methods, declared together with a variable.
                    Some(OutlineNodeRule::Container(_)) => {
                        if let Some(body) = child.child_by_field_name("body") {
                            self.visit_children(
                                body,
                                OutlineDefinitionScope {
                                    exported: true,
                                    depth: MAX_DEPTH / 2,
                                    in_type: true,
                                },
                            );
                        }
                    }
                    _ => self.shorten_values(child, depth + 1),
                },
                _ => {}
            }
        }
    }

    /// Leaves out the body of a function.
    fn cut_body(&mut self, node: Node<'_>) {
        // In C#, the body of a property is `accessors`, or `value` if it is an expression.
        let body = ["body", "accessors", "value"].iter().find_map(|field| node.child_by_field_name(field));
        let Some(body) = body else { return };
        if self.language != Language::Python {
            if body.kind() == "accessor_list" && !self.text_of(body)[1..].contains(['{', '>']) {
                return; // `{ get; set; }` is a part of the signature.
            }
            return self.cut_to_placeholder(body.byte_range());
        }
        let mut cursor = node.walk();
        for comment in node.named_children(&mut cursor).filter(|child| child.kind() == "comment") {
            self.cuts.push(OutlineCut { range: comment.byte_range(), placeholder: "" });
        }
        match docstring(body) {
            Some(doc) => {
                self.shorten_doc_block(doc);
                self.cuts.push(OutlineCut { range: doc.end_byte()..body.end_byte(), placeholder: "" });
            }
            None => self.cut_to_placeholder(body.byte_range()),
        }
    }

    fn cut_to_placeholder(&mut self, range: Range<usize>) {
        self.cuts.push(OutlineCut { range, placeholder: self.language.placeholder() });
    }

    /// Leaves out a range, and its whole lines if nothing else is on them.
    fn cut_lines(&mut self, range: Range<usize>) {
        let bytes = self.text.as_bytes();
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let mut start = range.start;
        while start > 0 && blank(&bytes[start - 1]) {
            start -= 1;
        }
        let mut end = range.end;
        while bytes.get(end).is_some_and(|byte| blank(byte) || *byte == b';') {
            end += 1;
        }
        let starts_line = start == 0 || bytes[start - 1] == b'\n';
        let ends_line = bytes.get(end).is_none_or(|&byte| byte == b'\n');
        let range = match (starts_line, ends_line) {
            (true, true) => start..(end + 1).min(bytes.len()),
            // The node ends with its line end.
            (true, false) if range.end > 0 && bytes[range.end - 1] == b'\n' => start..range.end,
            (false, true) => start..end,
            _ => range,
        };
        self.cuts.push(OutlineCut { range, placeholder: "" });
    }

    /// Returns the number of line comments that follow each other without a gap from the first of `nodes`.
    fn comment_run(&self, nodes: &[Node<'_>]) -> usize {
        let is_line = |node: Node<'_>| self.text_of(node).starts_with("//");
        let mut length = 1;
        while let Some(&next) = nodes.get(length) {
            let previous = nodes[length - 1];
            let follows = next.start_position().row <= last_row(previous) + 1;
            let same_kind = self.language.is_doc_comment(self.text_of(next))
                == self.language.is_doc_comment(self.text_of(previous));
            if self.language.rule(next.kind()) != Some(OutlineNodeRule::Comment)
                || !follows
                || !same_kind
                || !is_line(next)
                || !is_line(previous)
            {
                break;
            }
            length += 1;
        }
        length
    }

    /// Keeps the first paragraph of a run of comments if they document something, and nothing otherwise.
    fn visit_comments(&mut self, run: &[Node<'_>], next: Option<Node<'_>>) {
        let [first, .., last] = [run[0], run[run.len() - 1]];
        let adjacent = next.is_some_and(|next| {
            next.start_position().row <= last_row(last) + 1
                && !matches!(
                    self.language.rule(next.kind()),
                    Some(OutlineNodeRule::Comment | OutlineNodeRule::Drop)
                )
        });
        let documents = self.language.is_doc_comment(self.text_of(first))
            || (self.language.plain_comments_document() && adjacent);
        if !documents {
            for node in run {
                self.cut_lines(node.byte_range());
            }
        } else if run.len() == 1 && self.text_of(first).starts_with("/*") {
            self.shorten_doc_block(first);
        } else {
            let is_blank =
                |node: &Node<'_>| self.text_of(*node).trim_start_matches(['/', '!']).trim().is_empty();
            let kept = run.iter().position(is_blank).unwrap_or(run.len()).min(MAX_DOC_LINES);
            for node in &run[kept..] {
                self.cut_lines(node.byte_range());
            }
        }
    }

    /// Keeps the first paragraph of a comment or a string of several lines.
    fn shorten_doc_block(&mut self, node: Node<'_>) {
        let text = self.text_of(node);
        let (mut offset, mut kept_lines, mut cut_from) = (0, 0, None);
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let is_blank = line.trim().trim_matches(['*', '/', '"', '\'']).trim().is_empty();
            if (is_blank && kept_lines > 0 && number > 0) || kept_lines == MAX_DOC_LINES {
                cut_from = Some(offset);
                break;
            }
            kept_lines += usize::from(!is_blank);
            offset += line.len();
        }
        // The delimiter at the end is kept: the last line with it if it has nothing else, else the delimiter alone.
        let last_line = text.rfind('\n').map_or(0, |end| end + 1);
        let last = &text[last_line..];
        let closing = last.trim_start().trim_end();
        let end = if closing.len() <= 4 {
            last_line
        } else {
            text.len() - if closing.ends_with("*/") { 2 } else { 3 }
        };
        if let Some(from) = cut_from.filter(|&from| from < end && text.is_char_boundary(end)) {
            self.cuts.push(OutlineCut {
                range: node.start_byte() + from..node.start_byte() + end,
                placeholder: "",
            });
        }
    }

    /// Keeps the first paragraph of the docstring that begins a Python `body`.
    fn shorten_docstring(&mut self, body: Node<'_>) {
        if self.language == Language::Python
            && let Some(doc) = docstring(body)
        {
            self.shorten_doc_block(doc);
        }
    }

    /// Returns true for attributes that tell a user of the definition nothing.
    fn is_irrelevant_attribute(&self, node: Node<'_>) -> bool {
        const IRRELEVANT: [&str; 9] =
            ["inline", "allow", "expect", "warn", "deny", "doc", "cold", "track_caller", "rustfmt"];
        if !matches!(node.kind(), "attribute_item" | "inner_attribute_item") || node.has_error() {
            return false;
        }
        let name = self.text_of(node).trim_start_matches(['#', '!', '[']);
        IRRELEVANT.iter().any(|attribute| {
            name.strip_prefix(attribute).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })
    }

    /// Returns true for languages in which only marked definitions can be used from other files.
    fn exports_are_marked(&self) -> bool {
        matches!(self.language, Language::JavaScript | Language::TypeScript | Language::Tsx)
    }

    /// Returns true if other files may use the definition `node`.
    fn is_exported(&self, node: Node<'_>, scope: OutlineDefinitionScope) -> bool {
        let text = self.text_of(node);
        let name = || name_of(node).map_or("", |name| self.text_of(name));
        match self.language {
            Language::Rust => {
                text.starts_with("pub ")
                    || text.starts_with("pub(crate)")
                    || node
                        .parent()
                        .and_then(|body| body.parent())
                        .is_some_and(|parent| parent.kind() == "trait_item")
                    || node.kind() == "macro_definition"
            }
            Language::Python => !name().starts_with('_'),
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                let parent = node.parent().map_or("", |parent| parent.kind());
                if scope.in_type {
                    !text.starts_with("private ") && !name().starts_with('#')
                } else {
                    matches!(parent, "export_statement" | "ambient_declaration")
                }
            }
            Language::Go => match node.kind() {
                // A declaration of several names is decided name by name.
                "type_declaration" | "const_declaration" | "var_declaration" => true,
                _ => name().starts_with(char::is_uppercase),
            },
            Language::Java | Language::CSharp => {
                let mut cursor = node.walk();
                let is_public = node.named_children(&mut cursor).any(|child| {
                    matches!(child.kind(), "modifiers" | "modifier") && self.text_of(child).contains("public")
                });
                let parent = node.parent().and_then(|body| body.parent()).map_or("", |parent| parent.kind());
                is_public
                    || matches!(parent, "interface_declaration" | "annotation_type_declaration")
                    || node.kind().starts_with("namespace")
            }
            Language::C | Language::Cpp => !text.starts_with("static "),
        }
    }

    /// Records the symbols that `node` defines.
    fn record_names(&mut self, node: Node<'_>, kind: SymbolKind, exported: bool) {
        if let Some(name) = name_of(node) {
            return self.record_symbol(name, kind, exported);
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for child in children {
            let Some(name) = name_of(child) else {
                // The list of a Go `var ( … )` declaration.
                if child.kind().ends_with("spec_list") {
                    self.record_names(child, kind, exported);
                }
                continue;
            };
            if !matches!(
                child.kind(),
                "variable_declarator"
                    | "type_spec"
                    | "type_alias"
                    | "const_spec"
                    | "var_spec"
                    | "variable_declaration"
            ) {
                continue;
            }
            let value = child.child_by_field_name("value").map_or("", |value| value.kind());
            let kind = match value {
                "arrow_function" | "function_expression" => SymbolKind::Function,
                "class" => SymbolKind::Type,
                _ => kind,
            };
            let exported = exported
                && (self.language != Language::Go || self.text_of(name).starts_with(char::is_uppercase));
            self.record_symbol(name, kind, exported);
        }
    }

    fn record_symbol(&mut self, name: Node<'_>, kind: SymbolKind, exported: bool) {
        let text = self.text_of(name);
        // Patterns, operators and the like are not names.
        if !text.is_empty()
            && text.len() <= MAX_NAME_BYTES
            && text.chars().all(|c| c.is_alphanumeric() || "_$#~:".contains(c))
        {
            let line = name.start_position().row + 1;
            self.symbols.push(CodeSymbol { name: text.to_owned(), kind, line, exported });
        }
    }
}
