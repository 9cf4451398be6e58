//! The grammars of the languages: what an outline does with each kind of node.

use super::language::Language;
use super::symbol::SymbolKind::{self, Constant, Function, Macro, Method, Module, Type};

/// The treatment of a node of a syntax tree in an outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutlineNodeRule {
    /// The node is left out.
    Drop,
    /// The node is kept without its body.
    Function(SymbolKind),
    /// The node is kept, and the rules are applied to the nodes of its body.
    Container(SymbolKind),
    /// The node defines nothing itself; the rules are applied to its children.
    Through,
    /// The node is kept without long values.
    Leaf(SymbolKind),
    /// The node is a comment, which may document the next definition.
    Comment,
}

use OutlineNodeRule::{Comment, Container, Drop, Leaf, Through};

impl Language {
    /// Returns the parser's grammar.
    pub(super) fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
            Self::CSharp => tree_sitter_c_sharp::LANGUAGE.into(),
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::Cpp => tree_sitter_cpp::LANGUAGE.into(),
        }
    }

    /// Returns true for C and C++.
    pub(super) fn is_c_family(self) -> bool {
        matches!(self, Self::C | Self::Cpp)
    }

    /// Returns the text in the place of a body that was left out.
    pub(super) fn placeholder(self) -> &'static str {
        if self == Self::Python { "..." } else { "{…}" }
    }

    /// Returns true if any comment right above a definition documents it, and not only comments of a special form.
    pub(super) fn plain_comments_document(self) -> bool {
        matches!(self, Self::Go | Self::C | Self::Cpp)
    }

    /// Returns true if `comment` begins like a documentation comment.
    pub(super) fn is_doc_comment(self, comment: &str) -> bool {
        let starts: &[&str] = match self {
            Self::Rust | Self::C | Self::Cpp => &["///", "//!", "/**", "/*!"],
            Self::JavaScript | Self::TypeScript | Self::Tsx | Self::Java => &["/**"],
            Self::CSharp => &["///", "/**"],
            Self::Python | Self::Go => &[],
        };
        starts.iter().any(|start| comment.starts_with(start))
    }

    /// Returns the rule for a node of this kind; `None` keeps the node as it is.
    pub(super) fn rule(self, kind: &str) -> Option<OutlineNodeRule> {
        match self {
            Self::Rust => rust(kind),
            Self::Python => python(kind),
            Self::JavaScript | Self::TypeScript | Self::Tsx => javascript(kind),
            Self::Go => go(kind),
            Self::Java => java(kind),
            Self::CSharp => c_sharp(kind),
            Self::C | Self::Cpp => c(kind),
        }
    }
}

fn rust(kind: &str) -> Option<OutlineNodeRule> {
    Some(match kind {
        "line_comment" | "block_comment" => Comment,
        "function_item" => OutlineNodeRule::Function(Function),
        "function_signature_item" => Leaf(Function),
        "struct_item" | "enum_item" | "union_item" | "type_item" => Leaf(Type),
        "associated_type" => Leaf(Type),
        "trait_item" => Container(Type),
        "impl_item" | "foreign_mod_item" | "mod_item" => Container(Module),
        "const_item" | "static_item" => Leaf(Constant),
        "macro_definition" => Leaf(Macro),
        "use_declaration" | "extern_crate_declaration" | "expression_statement" | "empty_statement" => Drop,
        _ => return None,
    })
}

fn python(kind: &str) -> Option<OutlineNodeRule> {
    Some(match kind {
        "comment" => Comment,
        "function_definition" => OutlineNodeRule::Function(Function),
        "class_definition" => Container(Type),
        "expression_statement" => Leaf(Constant),
        "type_alias_statement" => Leaf(Type),
        "decorated_definition"
        | "if_statement"
        | "elif_clause"
        | "else_clause"
        | "try_statement"
        | "except_clause"
        | "finally_clause"
        | "block" => Through,
        "import_statement"
        | "import_from_statement"
        | "future_import_statement"
        | "assert_statement"
        | "delete_statement"
        | "for_statement"
        | "while_statement"
        | "with_statement"
        | "raise_statement"
        | "global_statement"
        | "match_statement"
        | "print_statement" => Drop,
        _ => return None,
    })
}

fn javascript(kind: &str) -> Option<OutlineNodeRule> {
    Some(match kind {
        "comment" | "html_comment" => Comment,
        "function_declaration" | "generator_function_declaration" | "function_expression" => {
            OutlineNodeRule::Function(Function)
        }
        "method_definition" => OutlineNodeRule::Function(Method),
        "class_declaration" | "abstract_class_declaration" | "class" => Container(Type),
        "internal_module" | "module" => Container(Module),
        "export_statement" | "ambient_declaration" | "statement_block" => Through,
        "lexical_declaration" | "variable_declaration" | "public_field_definition" | "field_definition" => {
            Leaf(Constant)
        }
        "interface_declaration" | "type_alias_declaration" | "enum_declaration" => Leaf(Type),
        "function_signature" => Leaf(Function),
        "method_signature" | "abstract_method_signature" => Leaf(Method),
        "expression_statement" => Leaf(Constant),
        "import_statement" | "if_statement" | "for_statement" | "for_in_statement" | "while_statement"
        | "do_statement" | "try_statement" | "switch_statement" | "throw_statement" | "labeled_statement"
        | "empty_statement" | "class_static_block" | "hash_bang_line" => Drop,
        _ => return None,
    })
}

fn go(kind: &str) -> Option<OutlineNodeRule> {
    Some(match kind {
        "comment" => Comment,
        "function_declaration" => OutlineNodeRule::Function(Function),
        "method_declaration" => OutlineNodeRule::Function(Method),
        "type_declaration" => Leaf(Type),
        "const_declaration" | "var_declaration" => Leaf(Constant),
        "import_declaration" => Drop,
        _ => return None,
    })
}

fn java(kind: &str) -> Option<OutlineNodeRule> {
    Some(match kind {
        "line_comment" | "block_comment" => Comment,
        "class_declaration"
        | "interface_declaration"
        | "enum_declaration"
        | "record_declaration"
        | "annotation_type_declaration" => Container(Type),
        "enum_body_declarations" => Through,
        "method_declaration" | "constructor_declaration" | "compact_constructor_declaration" => {
            OutlineNodeRule::Function(Method)
        }
        "annotation_type_element_declaration" => Leaf(Method),
        "field_declaration" | "constant_declaration" => Leaf(Constant),
        "import_declaration" | "static_initializer" | "block" => Drop,
        _ => return None,
    })
}

fn c_sharp(kind: &str) -> Option<OutlineNodeRule> {
    Some(match kind {
        "comment" => Comment,
        "namespace_declaration" => Container(Module),
        "class_declaration" | "struct_declaration" | "record_declaration" | "interface_declaration" => {
            Container(Type)
        }
        "enum_declaration" | "delegate_declaration" => Leaf(Type),
        "method_declaration"
        | "constructor_declaration"
        | "destructor_declaration"
        | "operator_declaration"
        | "conversion_operator_declaration"
        | "property_declaration"
        | "indexer_declaration"
        | "event_declaration" => OutlineNodeRule::Function(Method),
        "field_declaration" | "event_field_declaration" => Leaf(Constant),
        "preproc_if" | "preproc_else" | "preproc_elif" => Through,
        "using_directive"
        | "global_statement"
        | "extern_alias_directive"
        | "preproc_region"
        | "preproc_endregion" => Drop,
        _ => return None,
    })
}

fn c(kind: &str) -> Option<OutlineNodeRule> {
    Some(match kind {
        "comment" => Comment,
        "function_definition" | "inline_method_definition" => OutlineNodeRule::Function(Function),
        "struct_specifier" | "union_specifier" | "class_specifier" => Container(Type),
        "namespace_definition" | "linkage_specification" => Container(Module),
        "enum_specifier" | "type_definition" | "alias_declaration" | "concept_definition" => Leaf(Type),
        "declaration" | "field_declaration" => Leaf(Constant),
        "preproc_def" | "preproc_function_def" => Leaf(Macro),
        "template_declaration" | "preproc_ifdef" | "preproc_if" | "preproc_else" | "preproc_elif" => Through,
        "preproc_include" | "expression_statement" | "using_declaration" => Drop,
        _ => return None,
    })
}
