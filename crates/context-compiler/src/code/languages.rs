//! The languages that have outlines: by which names their files go, and what the parts of their grammars are.

use super::ItemKind;

/// A language that [`outline`](super::outline) knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// `.rs`
    Rust,
    /// `.py`, `.pyi`
    Python,
    /// `.js`, `.mjs`, `.cjs`, `.jsx`
    JavaScript,
    /// `.ts`, `.mts`, `.cts`
    TypeScript,
    /// `.tsx`
    Tsx,
    /// `.go`
    Go,
    /// `.java`
    Java,
    /// `.cs`
    CSharp,
    /// `.c`
    C,
    /// `.cpp`, `.cc`, `.cxx`, `.hpp`, `.hh`, `.hxx`, and `.h`, since every header of C is nearly one of C++
    Cpp,
}

/// What the outline does with a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "outline"), allow(dead_code, reason = "only an outline asks"))]
pub(super) enum Rule {
    /// It goes.
    Drop,
    /// It stays, but for its body.
    Function(ItemKind),
    /// It stays, and what is in its body is looked at in turn.
    Container(ItemKind),
    /// It is no item itself; what is in it is looked at in turn.
    Through,
    /// It stays, but for a long value.
    Leaf(ItemKind),
    /// It may say something about the next item.
    Comment,
}

impl Language {
    const ALL: [Self; 10] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::Tsx,
        Self::Go,
        Self::Java,
        Self::CSharp,
        Self::C,
        Self::Cpp,
    ];

    /// The language of the file at `path`, by the end of its name.
    pub fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let (_, end) = name.rsplit_once('.')?;
        Some(match end {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            "cs" => Self::CSharp,
            "c" => Self::C,
            "cpp" | "cc" | "cxx" | "hpp" | "hh" | "hxx" | "h" => Self::Cpp,
            _ => return None,
        })
    }

    /// What a Markdown fence calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Tsx => "tsx",
            Self::Go => "go",
            Self::Java => "java",
            Self::CSharp => "csharp",
            Self::C => "c",
            Self::Cpp => "cpp",
        }
    }

    /// A number for it that does not change.
    pub(crate) fn tag(self) -> u8 {
        Self::ALL.iter().zip(0..).find(|&(&language, _)| language == self).map_or(u8::MAX, |(_, tag)| tag)
    }

    /// The language of a [`tag`](Self::tag).
    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }
}

#[cfg(feature = "outline")]
impl Language {
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

    pub(super) fn is_c(self) -> bool {
        matches!(self, Self::C | Self::Cpp)
    }

    /// What stands for a body that was left out.
    pub(super) fn placeholder(self) -> &'static str {
        if self == Self::Python { "..." } else { "{…}" }
    }

    /// Whether any comment right above an item is its documentation, and not only those of a special form.
    pub(super) fn plain_comments_document(self) -> bool {
        matches!(self, Self::Go | Self::C | Self::Cpp)
    }

    /// Whether a comment that begins so is documentation.
    pub(super) fn is_doc(self, comment: &str) -> bool {
        let starts: &[&str] = match self {
            Self::Rust | Self::C | Self::Cpp => &["///", "//!", "/**", "/*!"],
            Self::JavaScript | Self::TypeScript | Self::Tsx | Self::Java => &["/**"],
            Self::CSharp => &["///", "/**"],
            Self::Python | Self::Go => &[],
        };
        starts.iter().any(|start| comment.starts_with(start))
    }

    /// What to do with a node of this kind; `None` keeps it as it is.
    pub(super) fn rule(self, kind: &str) -> Option<Rule> {
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

#[cfg(feature = "outline")]
use ItemKind::{Constant, Function, Macro, Method, Module, Type};
#[cfg(feature = "outline")]
use Rule::{Comment, Container, Drop, Leaf, Through};

#[cfg(feature = "outline")]
fn rust(kind: &str) -> Option<Rule> {
    Some(match kind {
        "line_comment" | "block_comment" => Comment,
        "function_item" => Rule::Function(Function),
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

#[cfg(feature = "outline")]
fn python(kind: &str) -> Option<Rule> {
    Some(match kind {
        "comment" => Comment,
        "function_definition" => Rule::Function(Function),
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

#[cfg(feature = "outline")]
fn javascript(kind: &str) -> Option<Rule> {
    Some(match kind {
        "comment" | "html_comment" => Comment,
        "function_declaration" | "generator_function_declaration" | "function_expression" => {
            Rule::Function(Function)
        }
        "method_definition" => Rule::Function(Method),
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

#[cfg(feature = "outline")]
fn go(kind: &str) -> Option<Rule> {
    Some(match kind {
        "comment" => Comment,
        "function_declaration" => Rule::Function(Function),
        "method_declaration" => Rule::Function(Method),
        "type_declaration" => Leaf(Type),
        "const_declaration" | "var_declaration" => Leaf(Constant),
        "import_declaration" => Drop,
        _ => return None,
    })
}

#[cfg(feature = "outline")]
fn java(kind: &str) -> Option<Rule> {
    Some(match kind {
        "line_comment" | "block_comment" => Comment,
        "class_declaration"
        | "interface_declaration"
        | "enum_declaration"
        | "record_declaration"
        | "annotation_type_declaration" => Container(Type),
        "enum_body_declarations" => Through,
        "method_declaration" | "constructor_declaration" | "compact_constructor_declaration" => {
            Rule::Function(Method)
        }
        "annotation_type_element_declaration" => Leaf(Method),
        "field_declaration" | "constant_declaration" => Leaf(Constant),
        "import_declaration" | "static_initializer" | "block" => Drop,
        _ => return None,
    })
}

#[cfg(feature = "outline")]
fn c_sharp(kind: &str) -> Option<Rule> {
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
        | "event_declaration" => Rule::Function(Method),
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

#[cfg(feature = "outline")]
fn c(kind: &str) -> Option<Rule> {
    Some(match kind {
        "comment" => Comment,
        "function_definition" | "inline_method_definition" => Rule::Function(Function),
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

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn a_language_is_told_by_the_end_of_the_files_name() {
        for (path, language) in [
            ("a/b.rs", Some(Language::Rust)),
            ("x.d.ts", Some(Language::TypeScript)),
            ("rs", None),
            ("a.rs/b", None),
        ] {
            assert_eq!(Language::of(path), language, "{path}");
        }
    }

    #[test]
    fn a_tag_leads_back_to_its_language() {
        for language in Language::ALL {
            assert_eq!(Language::from_tag(language.tag()), Some(language));
        }
        assert_eq!(Language::from_tag(200), None);
    }
}
