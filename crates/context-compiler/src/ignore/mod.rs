//! The ignore files of a project: which ones count, and how they are read from a tree. The rules themselves are those of
//! [`workspace::ignore_rules`].

mod context_ignore;
mod files;
mod folder_rules;

pub(crate) use context_ignore::ContextIgnore;
pub(crate) use folder_rules::{UnreadableIgnoreFile, rules_within};
