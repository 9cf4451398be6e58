//! The branches of `if`.

use super::words::children;
use tree_sitter::Node;

/// A branch of `if`.
#[derive(Default)]
pub(super) struct IfBranch<'t> {
    pub(super) conditions: Vec<(Node<'t>, bool)>,
    pub(super) body: Vec<(Node<'t>, bool)>,
}

impl<'t> IfBranch<'t> {
    /// Reads the statements of `if`, `elif` or `else` itself.
    pub(super) fn read(&mut self, node: Node<'t>) {
        let mut is_body = node.kind() == "else_clause";
        for (child, _) in children(node) {
            let list = if is_body { &mut self.body } else { &mut self.conditions };
            match child.kind() {
                "then" => is_body = true,
                "elif_clause" | "else_clause" | "comment" => {}
                "&" => {
                    if let Some(last) = list.last_mut() {
                        last.1 = true;
                    }
                }
                _ if child.is_named() => list.push((child, false)),
                _ => {}
            }
        }
    }
}
