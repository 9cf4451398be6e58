//! Questions about nodes of a syntax tree.

use tree_sitter::Node;

/// Nested statements that are searched for a definition, since each level costs stack.
const MAX_STATEMENT_DEPTH: usize = 6;
/// Nested declarators of C that are followed.
const MAX_DECLARATORS: usize = 16;

/// Returns the row that a node ends on, not counting a line end at its own end.
pub(super) fn last_row(node: Node<'_>) -> usize {
    let end = node.end_position();
    if end.column == 0 { end.row.saturating_sub(1).max(node.start_position().row) } else { end.row }
}

/// Returns true if a Python statement has a function or a class in it.
pub(super) fn contains_definition(node: Node<'_>, depth: usize) -> bool {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).any(|child| {
        matches!(child.kind(), "function_definition" | "class_definition" | "decorated_definition")
            || (depth < MAX_STATEMENT_DEPTH
                && !child.kind().ends_with("expression")
                && contains_definition(child, depth + 1))
    })
}

/// Returns true if a C declaration declares a function.
pub(super) fn is_c_function(node: Node<'_>) -> bool {
    let mut current = node;
    for _ in 0..MAX_DECLARATORS {
        match current.child_by_field_name("declarator") {
            Some(inner) if inner.kind() == "function_declarator" => return true,
            Some(inner) => current = inner,
            None => break,
        }
    }
    false
}

/// Returns the string that documents a Python body.
pub(super) fn docstring(body: Node<'_>) -> Option<Node<'_>> {
    body.named_child(0)
        .filter(|first| first.kind() == "expression_statement")
        .and_then(|first| first.named_child(0))
        .filter(|string| string.kind() == "string")
}

/// Returns the node of the name that `node` itself defines.
pub(super) fn name_of(node: Node<'_>) -> Option<Node<'_>> {
    if let Some(name) = node.child_by_field_name("name") {
        return Some(name);
    }
    // In C the name is inside pointers, arrays and parameters.
    let mut current =
        node.child_by_field_name("declarator").or_else(|| node.child_by_field_name("property"))?;
    for _ in 0..MAX_DECLARATORS {
        match current.child_by_field_name("declarator").or_else(|| current.child_by_field_name("name")) {
            Some(inner) => current = inner,
            None => break,
        }
    }
    Some(current)
}
