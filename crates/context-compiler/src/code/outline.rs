//! The signatures and documentation of a file, without its bodies.

use super::Language;

/// A file, told shorter: its text without imports, bodies, long values, and comments that document nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// What it was read as.
    pub language: Language,
    /// What is left of the text, with `{…}` (in Python `...`) where a body was. Never longer than the text.
    pub text: String,
    /// What the file defines, in its order.
    pub items: Vec<Item>,
    /// Nothing was left out.
    pub complete: bool,
}

/// Something that a file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name alone, without that of what it is in.
    pub name: String,
    /// What it is.
    pub kind: ItemKind,
    /// The line that it begins on, from 1.
    pub line: usize,
    /// As far as the file alone can tell, other files may use it.
    pub exported: bool,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemKind {
    /// A function outside a type.
    Function,
    /// A function, constructor or property of a type.
    Method,
    /// A class, struct, enum, interface, trait or alias.
    Type,
    /// A constant, variable or field.
    Constant,
    /// A macro.
    Macro,
    /// A module or namespace.
    Module,
}

impl ItemKind {
    const ALL: [Self; 6] =
        [Self::Function, Self::Method, Self::Type, Self::Constant, Self::Macro, Self::Module];

    /// A number for it that does not change.
    pub(crate) fn tag(self) -> u8 {
        Self::ALL.iter().zip(0..).find(|&(&kind, _)| kind == self).map_or(u8::MAX, |(_, tag)| tag)
    }

    /// The kind of a [`tag`](Self::tag).
    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }
}

/// The outline of `text`, the content of the file at `path`.
///
/// An item with an error in it keeps its whole text: what could not be understood is not cut. Of documentation the
/// first paragraph stays, four lines at most. `None` where the language is not known, the text is over 1 MiB, or
/// the parser needs more steps than any sensible text of that size; and always without the feature `outline`.
/// The answer depends on the arguments alone, not on the speed of the machine.
pub fn outline(path: &str, text: &str) -> Option<Outline> {
    let language = Language::of(path)?;
    #[cfg(feature = "outline")]
    return parse::outline(language, text);
    #[cfg(not(feature = "outline"))]
    {
        let _ = (language, text);
        None
    }
}

#[cfg(feature = "outline")]
mod parse {
    use super::super::languages::Rule;
    use super::{Item, ItemKind, Language, Outline};
    use std::ops::{ControlFlow, Range};
    use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

    /// No longer text is parsed: it is generated, and to parse it takes seconds.
    const LONGEST: usize = 1 << 20;
    /// How deep items in items are looked at.
    const DEEPEST: usize = 48;
    /// Documentation that stays, in lines.
    const DOC_LINES: usize = 4;
    /// A value of more bytes goes.
    const LONG_VALUE: usize = 80;

    pub(super) fn outline(language: Language, text: &str) -> Option<Outline> {
        if text.len() > LONGEST {
            return None;
        }
        let tree = parse(language, text)?;
        let mut pass = Pass { language, text, cuts: Vec::new(), items: Vec::new() };
        pass.children(tree.root_node(), Within { exported: true, depth: 0, in_type: false });
        let Pass { mut cuts, items, .. } = pass;
        cuts.sort_by_key(|cut| (cut.range.start, std::cmp::Reverse(cut.range.end)));
        let short = apply(text, &cuts);
        Some(Outline { language, complete: short.len() == text.len(), text: short, items })
    }

    fn parse(language: Language, text: &str) -> Option<Tree> {
        let mut parser = Parser::new();
        parser.set_language(&language.grammar()).ok()?;
        // The parser calls back every hundred steps; a sensible text takes about one a byte.
        let mut calls = 1000 + text.len() / 4;
        let mut progress = |_: &ParseState| {
            calls = calls.saturating_sub(1);
            if calls == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let bytes = text.as_bytes();
        let mut from = |at: usize, _| bytes.get(at..).unwrap_or_default();
        parser.parse_with_options(&mut from, None, Some(ParseOptions::new().progress_callback(&mut progress)))
    }

    /// A range that goes, and what stands in its place.
    struct Cut {
        range: Range<usize>,
        placeholder: &'static str,
    }

    /// What an item is in.
    #[derive(Clone, Copy)]
    struct Within {
        exported: bool,
        depth: usize,
        in_type: bool,
    }

    struct Pass<'t> {
        language: Language,
        text: &'t str,
        cuts: Vec<Cut>,
        items: Vec<Item>,
    }

    impl<'t> Pass<'t> {
        fn text_of(&self, node: Node<'_>) -> &'t str {
            self.text.get(node.byte_range()).unwrap_or_default()
        }

        /// Looks at what is in `node`.
        fn children(&mut self, node: Node<'_>, within: Within) {
            let mut cursor = node.walk();
            let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
            let (mut at, mut is_first) = (0, true);
            while let Some(&child) = children.get(at) {
                match self.language.rule(child.kind()) {
                    Some(Rule::Comment) => {
                        let run = self.comment_run(&children[at..]);
                        self.comments(&children[at..at + run], children.get(at + run).copied());
                        at += run;
                        continue;
                    }
                    Some(rule) if !child.is_missing() => self.item(child, rule, within, is_first),
                    _ if self.is_noise(child) => self.remove(child.byte_range()),
                    _ => {}
                }
                is_first = false;
                at += 1;
            }
        }

        fn item(&mut self, node: Node<'_>, rule: Rule, within: Within, is_first: bool) {
            let exported = within.exported && self.is_exported(node, within);
            let broken = node.has_error();
            match rule {
                Rule::Drop => {
                    // What is exported again is what others see.
                    if !broken && !self.text_of(node).starts_with("pub ") {
                        self.remove(node.byte_range());
                    }
                }
                Rule::Function(kind) => {
                    let kind =
                        if within.in_type && kind == ItemKind::Function { ItemKind::Method } else { kind };
                    self.name(node, kind, exported);
                    if !broken {
                        self.body(node);
                    }
                }
                Rule::Container(kind) => {
                    let is_impl = node.kind() == "impl_item";
                    if !is_impl {
                        self.name(node, kind, exported);
                    }
                    let Some(body) = node.child_by_field_name("body") else { return };
                    let name = node.child_by_field_name("name").map_or("", |name| self.text_of(name));
                    if self.language == Language::Rust && matches!(name, "tests" | "test") && !broken {
                        return self.replace(body.byte_range());
                    }
                    let in_type = is_impl || kind == ItemKind::Type;
                    // What a trait or an interface holds is as visible as itself; of an `impl` each part says so.
                    let exported = exported || is_impl || kind == ItemKind::Module;
                    if within.depth < DEEPEST {
                        self.docstring(body);
                        self.children(body, Within { exported, depth: within.depth + 1, in_type });
                    }
                }
                Rule::Through => {
                    if self.language == Language::Python && !broken && !defines(node, 0) {
                        // Statements, such as those of a script.
                        self.remove(node.byte_range());
                    } else if within.depth < DEEPEST {
                        let exports = node.kind() == "export_statement";
                        let exported =
                            within.exported && (exports || !self.exports_are_marked() || within.in_type);
                        let depth = within.depth + 1;
                        self.children(
                            node,
                            Within { exported: exported || within.exported, depth, ..within },
                        );
                    }
                }
                Rule::Leaf(kind) => self.leaf(node, kind, exported, within.in_type, is_first),
                Rule::Comment => {}
            }
        }

        fn leaf(&mut self, node: Node<'_>, kind: ItemKind, exported: bool, in_type: bool, is_first: bool) {
            let broken = node.has_error();
            if node.kind() == "expression_statement" {
                let inner = node.named_child(0);
                return match inner.map(|inner| (inner.kind(), inner)) {
                    // TypeScript's namespaces.
                    Some(("internal_module", module)) => {
                        let within = Within { exported, depth: 1, in_type: false };
                        self.item(module, Rule::Container(ItemKind::Module), within, false);
                    }
                    Some(("assignment", assignment)) if self.language == Language::Python => {
                        if let Some(left) =
                            assignment.child_by_field_name("left").filter(|left| left.kind() == "identifier")
                        {
                            self.push(left, kind, exported);
                        }
                        if !broken {
                            self.values(assignment, 0);
                        }
                    }
                    // The documentation of a module.
                    Some(("string", string)) if is_first && self.language == Language::Python => {
                        self.doc_block(string);
                    }
                    _ if broken => {}
                    Some(("assignment_expression", assignment)) => self.values(assignment, 0),
                    _ => self.remove(node.byte_range()),
                };
            }
            match node.kind() {
                // A field of C is nothing without what it is in.
                "field_declaration" if self.language.is_c() && !is_c_function(node) => {}
                "declaration" if is_c_function(node) => self.name(node, ItemKind::Function, exported),
                _ if in_type && (kind == ItemKind::Function || is_c_function(node)) => {
                    self.name(node, ItemKind::Method, exported);
                }
                _ => self.name(node, kind, exported),
            }
            if !broken {
                self.values(node, 0);
            }
        }

        /// Leaves out the bodies and the long values that `node` holds.
        fn values(&mut self, node: Node<'_>, depth: usize) {
            for index in 0..node.child_count() {
                let Ok(index) = u32::try_from(index) else { return };
                let Some(child) = node.child(index) else { continue };
                match node.field_name_for_child(index) {
                    Some("value" | "right" | "default_value") => match child.child_by_field_name("body") {
                        Some(body) if body.kind() != "class_body" => self.replace(body.byte_range()),
                        _ if child.kind() == "token_tree" => self.replace(child.byte_range()),
                        _ if child.byte_range().len() > LONG_VALUE => {
                            self.cuts.push(Cut { range: child.byte_range(), placeholder: "…" });
                        }
                        _ => {}
                    },
                    _ if child.kind() == "initializer_list" && child.byte_range().len() > LONG_VALUE => {
                        self.replace(child.byte_range());
                    }
                    _ if depth < 4 && child.is_named() => match self.language.rule(child.kind()) {
                        // A struct with methods, declared together with a name.
                        Some(Rule::Container(_)) => {
                            if let Some(body) = child.child_by_field_name("body") {
                                self.children(
                                    body,
                                    Within { exported: true, depth: DEEPEST / 2, in_type: true },
                                );
                            }
                        }
                        _ => self.values(child, depth + 1),
                    },
                    _ => {}
                }
            }
        }

        /// Leaves out the body of a function.
        fn body(&mut self, node: Node<'_>) {
            let body =
                ["body", "accessors", "value"].iter().find_map(|field| node.child_by_field_name(field));
            let Some(body) = body else { return };
            if self.language != Language::Python {
                if body.kind() == "accessor_list" && !self.text_of(body)[1..].contains(['{', '>']) {
                    return; // `{ get; set; }` is a signature.
                }
                return self.replace(body.byte_range());
            }
            let mut cursor = node.walk();
            for comment in node.named_children(&mut cursor).filter(|child| child.kind() == "comment") {
                self.cuts.push(Cut { range: comment.byte_range(), placeholder: "" });
            }
            match docstring(body) {
                Some(doc) => {
                    self.doc_block(doc);
                    self.cuts.push(Cut { range: doc.end_byte()..body.end_byte(), placeholder: "" });
                }
                None => self.replace(body.byte_range()),
            }
        }

        fn replace(&mut self, range: Range<usize>) {
            self.cuts.push(Cut { range, placeholder: self.language.placeholder() });
        }

        /// Leaves out a range, and its lines where nothing else is on them.
        fn remove(&mut self, range: Range<usize>) {
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
            let at_end = bytes.get(end).is_none_or(|&byte| byte == b'\n');
            let range = match (starts_line, at_end) {
                (true, true) => start..(end + 1).min(bytes.len()),
                // A node that has its line end in it.
                (true, false) if range.end > 0 && bytes[range.end - 1] == b'\n' => start..range.end,
                (false, true) => start..end,
                _ => range,
            };
            self.cuts.push(Cut { range, placeholder: "" });
        }

        /// How many comments follow each other line by line from the first of `nodes`.
        fn comment_run(&self, nodes: &[Node<'_>]) -> usize {
            let is_line = |node: Node<'_>| self.text_of(node).starts_with("//");
            let mut length = 1;
            while let Some(&next) = nodes.get(length) {
                let previous = nodes[length - 1];
                let follows = next.start_position().row <= last_row(previous) + 1;
                let same =
                    self.language.is_doc(self.text_of(next)) == self.language.is_doc(self.text_of(previous));
                if self.language.rule(next.kind()) != Some(Rule::Comment)
                    || !follows
                    || !same
                    || !is_line(next)
                    || !is_line(previous)
                {
                    break;
                }
                length += 1;
            }
            length
        }

        /// Keeps of a run of comments the first paragraph, if they document something.
        fn comments(&mut self, run: &[Node<'_>], next: Option<Node<'_>>) {
            let [first, .., last] = [run[0], run[run.len() - 1]];
            let adjacent = next.is_some_and(|next| {
                next.start_position().row <= last_row(last) + 1
                    && !matches!(self.language.rule(next.kind()), Some(Rule::Comment | Rule::Drop))
            });
            let documents = self.language.is_doc(self.text_of(first))
                || (self.language.plain_comments_document() && adjacent);
            if !documents {
                for node in run {
                    self.remove(node.byte_range());
                }
            } else if run.len() == 1 && self.text_of(first).starts_with("/*") {
                self.doc_block(first);
            } else {
                let is_blank =
                    |node: &Node<'_>| self.text_of(*node).trim_start_matches(['/', '!']).trim().is_empty();
                let kept = run.iter().position(is_blank).unwrap_or(run.len()).min(DOC_LINES);
                for node in &run[kept..] {
                    self.remove(node.byte_range());
                }
            }
        }

        /// Keeps of a comment or a string of several lines the first paragraph.
        fn doc_block(&mut self, node: Node<'_>) {
            let text = self.text_of(node);
            let (mut at, mut said, mut from) = (0, 0, None);
            for (number, line) in text.split_inclusive('\n').enumerate() {
                let is_blank = line.trim().trim_matches(['*', '/', '"', '\'']).trim().is_empty();
                if (is_blank && said > 0 && number > 0) || said == DOC_LINES {
                    from = Some(at);
                    break;
                }
                said += usize::from(!is_blank);
                at += line.len();
            }
            // The last line, with what closes it, stays; all of it only if that is all it has.
            let last_line = text.rfind('\n').map_or(0, |end| end + 1);
            let last = &text[last_line..];
            let closing = last.trim_start().trim_end();
            let end = if closing.len() <= 4 {
                last_line
            } else {
                text.len() - if closing.ends_with("*/") { 2 } else { 3 }
            };
            if let Some(from) = from.filter(|&from| from < end && text.is_char_boundary(end)) {
                self.cuts
                    .push(Cut { range: node.start_byte() + from..node.start_byte() + end, placeholder: "" });
            }
        }

        /// Keeps of a Python docstring that begins `body` the first paragraph.
        fn docstring(&mut self, body: Node<'_>) {
            if self.language == Language::Python
                && let Some(doc) = docstring(body)
            {
                self.doc_block(doc);
            }
        }

        /// Attributes that say nothing to who uses the item.
        fn is_noise(&self, node: Node<'_>) -> bool {
            const NOISE: [&str; 9] =
                ["inline", "allow", "expect", "warn", "deny", "doc", "cold", "track_caller", "rustfmt"];
            if !matches!(node.kind(), "attribute_item" | "inner_attribute_item") || node.has_error() {
                return false;
            }
            let name = self.text_of(node).trim_start_matches(['#', '!', '[']);
            NOISE.iter().any(|noise| {
                name.strip_prefix(noise).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            })
        }

        /// Whether only what says so can be used from other files.
        fn exports_are_marked(&self) -> bool {
            matches!(self.language, Language::JavaScript | Language::TypeScript | Language::Tsx)
        }

        fn is_exported(&self, node: Node<'_>, within: Within) -> bool {
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
                    if within.in_type {
                        !text.starts_with("private ") && !name().starts_with('#')
                    } else {
                        matches!(parent, "export_statement" | "ambient_declaration")
                    }
                }
                Language::Go => match node.kind() {
                    // Each of several names says for itself.
                    "type_declaration" | "const_declaration" | "var_declaration" => true,
                    _ => name().starts_with(char::is_uppercase),
                },
                Language::Java | Language::CSharp => {
                    let mut cursor = node.walk();
                    let said = node.named_children(&mut cursor).any(|child| {
                        matches!(child.kind(), "modifiers" | "modifier")
                            && self.text_of(child).contains("public")
                    });
                    let parent =
                        node.parent().and_then(|body| body.parent()).map_or("", |parent| parent.kind());
                    said || matches!(parent, "interface_declaration" | "annotation_type_declaration")
                        || node.kind().starts_with("namespace")
                }
                Language::C | Language::Cpp => !text.starts_with("static "),
            }
        }

        /// Records the name or the names that `node` defines.
        fn name(&mut self, node: Node<'_>, kind: ItemKind, exported: bool) {
            if let Some(name) = name_of(node) {
                return self.push(name, kind, exported);
            }
            let mut cursor = node.walk();
            let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
            for child in children {
                let Some(name) = name_of(child) else {
                    // The list of a Go `var ( … )`.
                    if child.kind().ends_with("spec_list") {
                        self.name(child, kind, exported);
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
                    "arrow_function" | "function_expression" => ItemKind::Function,
                    "class" => ItemKind::Type,
                    _ => kind,
                };
                let exported = exported
                    && (self.language != Language::Go || self.text_of(name).starts_with(char::is_uppercase));
                self.push(name, kind, exported);
            }
        }

        fn push(&mut self, name: Node<'_>, kind: ItemKind, exported: bool) {
            let text = self.text_of(name);
            // Patterns, operators and the like are no names.
            if !text.is_empty()
                && text.len() <= 200
                && text.chars().all(|c| c.is_alphanumeric() || "_$#~:".contains(c))
            {
                let line = name.start_position().row + 1;
                self.items.push(Item { name: text.to_owned(), kind, line, exported });
            }
        }
    }

    /// The row that a node ends on, not counting a line end in it.
    fn last_row(node: Node<'_>) -> usize {
        let end = node.end_position();
        if end.column == 0 { end.row.saturating_sub(1).max(node.start_position().row) } else { end.row }
    }

    /// Whether a Python statement has a function or class in it.
    fn defines(node: Node<'_>, depth: usize) -> bool {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).any(|child| {
            matches!(child.kind(), "function_definition" | "class_definition" | "decorated_definition")
                || (depth < 6 && !child.kind().ends_with("expression") && defines(child, depth + 1))
        })
    }

    /// Whether a declaration of C declares a function.
    fn is_c_function(node: Node<'_>) -> bool {
        let mut at = node;
        for _ in 0..16 {
            match at.child_by_field_name("declarator") {
                Some(inner) if inner.kind() == "function_declarator" => return true,
                Some(inner) => at = inner,
                None => break,
            }
        }
        false
    }

    /// The string that documents a Python body.
    fn docstring(body: Node<'_>) -> Option<Node<'_>> {
        body.named_child(0)
            .filter(|first| first.kind() == "expression_statement")
            .and_then(|first| first.named_child(0))
            .filter(|string| string.kind() == "string")
    }

    /// The node of an item's own name.
    fn name_of(node: Node<'_>) -> Option<Node<'_>> {
        if let Some(name) = node.child_by_field_name("name") {
            return Some(name);
        }
        // In C the name is inside pointers, arrays and parameters.
        let mut at =
            node.child_by_field_name("declarator").or_else(|| node.child_by_field_name("property"))?;
        for _ in 0..16 {
            match at.child_by_field_name("declarator").or_else(|| at.child_by_field_name("name")) {
                Some(inner) => at = inner,
                None => break,
            }
        }
        Some(at)
    }

    /// `text` without the cuts, of which one inside another does not count.
    fn apply(text: &str, cuts: &[Cut]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for Cut { range, placeholder } in cuts {
            let longer = placeholder.len() < range.len();
            if range.start < at
                || !longer
                || !text.is_char_boundary(range.start)
                || !text.is_char_boundary(range.end)
            {
                continue;
            }
            out.push_str(&text[at..range.start]);
            out.push_str(placeholder);
            at = range.end;
            // Where whole lines went, the blank ones around them become one.
            if placeholder.is_empty() && (out.is_empty() || out.ends_with("\n\n")) {
                while let Some(rest) =
                    text[at..].strip_prefix('\n').or_else(|| text[at..].strip_prefix("\r\n"))
                {
                    at = text.len() - rest.len();
                }
            }
        }
        out.push_str(&text[at..]);
        out
    }
}
