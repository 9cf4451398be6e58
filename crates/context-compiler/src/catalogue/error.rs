//! The errors of a catalogue, with the line and column that they are about.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// An error in a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .position.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default())]
pub struct CatalogueError {
    /// Line and column, both from 1; columns are characters. `None` for an error in the layout.
    pub position: Option<(usize, usize)>,
    problem: CatalogueProblem,
}

/// The cause of a [`CatalogueError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CatalogueProblem {
    #[error("{message}")]
    Syntax { message: String },
    #[error("role `{role}`: a name is 1 to 64 letters, digits, `-` and `_`")]
    RoleName { role: String },
    #[error("role `{role}`: it exists already; to replace it say `override = true`")]
    RoleExists { role: String },
    #[error("role `{role}`: `{path}` is no path beneath the project")]
    DocumentPath { role: String, path: String },
    #[error("layout: `{path}` is no path beneath the project")]
    LayoutPath { path: String },
    #[error("role `{role}`: it extends itself: {chain}")]
    Cycle { role: String, chain: String },
    #[error("role `{role}`: it extends itself")]
    ExtendsItself { role: String },
    #[error("role `{role}`: it extends `{base}`, which does not exist")]
    UnknownBase { role: String, base: String },
}

impl CatalogueProblem {
    fn role(&self) -> Option<&str> {
        match self {
            Self::RoleName { role }
            | Self::RoleExists { role }
            | Self::DocumentPath { role, .. }
            | Self::Cycle { role, .. }
            | Self::ExtendsItself { role }
            | Self::UnknownBase { role, .. } => Some(role),
            Self::Syntax { .. } | Self::LayoutPath { .. } => None,
        }
    }
}

impl CatalogueError {
    /// The error of the TOML parser about `text`.
    pub(super) fn syntax(text: &str, error: &toml::de::Error) -> Self {
        Self {
            position: error.span().map(|span| line_and_column(text, span.start)),
            problem: CatalogueProblem::Syntax { message: error.message().to_owned() },
        }
    }

    /// An error in the settings that `text` contains, at the name of the role that it is about.
    pub(super) fn in_text(text: &str, problem: CatalogueProblem) -> Self {
        let position = problem.role().and_then(|role| position_of_role(text, role));
        Self { position, problem }
    }
}

/// Returns line and column of a byte offset.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// Parses `text` again to find the name of a role: the settings themselves are kept without spans.
fn position_of_role(text: &str, role: &str) -> Option<(usize, usize)> {
    #[derive(Deserialize)]
    struct RolePositions {
        #[serde(default)]
        roles: BTreeMap<Spanned<String>, toml::Value>,
    }
    let positions: RolePositions = toml::from_str(text).ok()?;
    let name = positions.roles.keys().find(|name| name.get_ref() == role)?;
    Some(line_and_column(text, name.span().start))
}
