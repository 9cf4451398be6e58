//! The words of nodes of the syntax tree, and the nodes below a node.

use tree_sitter::Node;

/// Returns the last part of a path.
pub(super) fn file_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
thread_local! {
    /// The number of nodes whose children this thread looked at.
    pub(super) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the children of a node, with the names of their fields.
pub(super) fn children(node: Node<'_>) -> impl Iterator<Item = (Node<'_>, Option<&'static str>)> {
    #[cfg(test)]
    LOOKED_AT.with(|count| count.set(count.get() + 1));
    (0..node.child_count()).filter_map(move |index| {
        let index = u32::try_from(index).ok()?;
        Some((node.child(index)?, node.field_name_for_child(index)))
    })
}

/// Returns the children that are no punctuation and no comments.
pub(super) fn named_children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    children(node).map(|(child, _)| child).filter(|child| child.is_named() && child.kind() != "comment")
}

/// Returns all nodes below a node, and the node itself. `goes_into` chooses the nodes whose children are looked at.
pub(super) fn descendants<'t>(node: Node<'t>, goes_into: impl Fn(Node<'t>) -> bool) -> Vec<Node<'t>> {
    let (mut found, mut open) = (Vec::new(), vec![node]);
    while let Some(node) = open.pop() {
        found.push(node);
        if goes_into(node) {
            let mut below: Vec<_> = named_children(node).collect();
            below.reverse();
            open.append(&mut below);
        }
    }
    found
}

/// Returns true for a statement that may read the words of its input one after the other.
pub(super) fn is_loop(node: Node<'_>) -> bool {
    matches!(node.kind(), "while_statement" | "for_statement" | "compound_statement" | "redirected_statement")
}

/// Returns the statements of a node with the names of their fields, and whether each runs in the background.
pub(super) fn children_with_background(
    node: Node<'_>,
) -> impl Iterator<Item = (Node<'_>, Option<&'static str>, bool)> {
    let all: Vec<_> = children(node).filter(|(child, _)| child.kind() != "comment").collect();
    let marks: Vec<_> = all.iter().skip(1).map(|(next, _)| next.kind() == "&").chain([false]).collect();
    all.into_iter()
        .zip(marks)
        .filter(|((child, _), _)| child.is_named())
        .map(|((child, field), is_background)| (child, field, is_background))
}

/// Returns the statements of a node, and whether each runs in the background.
pub(super) fn named_and_background(node: Node<'_>) -> Vec<(Node<'_>, bool)> {
    children_with_background(node).map(|(child, _, is_background)| (child, is_background)).collect()
}

/// A text of shell, of which nodes have parts.
#[derive(Clone, Copy)]
pub(super) struct Source<'s>(pub(super) &'s str);

impl<'s> Source<'s> {
    pub(super) fn of(self, node: Node<'_>) -> &'s str {
        self.0.get(node.byte_range()).unwrap_or_default()
    }

    /// Returns the name of a command.
    pub(super) fn name(self, command: Node<'_>) -> &'s str {
        command.child_by_field_name("name").map_or("", |name| self.of(name))
    }

    /// Returns the arguments of a command, without quotes around a whole one.
    pub(super) fn arguments(self, command: Node<'_>) -> Vec<&'s str> {
        let arguments = children(command).filter(|(_, field)| *field == Some("argument"));
        arguments.map(|(argument, _)| self.unquoted(argument)).collect()
    }

    fn unquoted(self, node: Node<'_>) -> &'s str {
        let text = self.of(node);
        let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
        inner('"').or_else(|| inner('\'')).unwrap_or(text)
    }
}
