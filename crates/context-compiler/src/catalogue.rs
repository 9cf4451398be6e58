//! Which documents a role reads, and where they are looked for: data, built in and replaceable.
//!
//! ```
//! use context_compiler::catalogue::Catalogue;
//!
//! let catalogue = Catalogue::built_in();
//! assert_eq!(catalogue.role("qa").documents, ["CONVENTIONS.md", "REQUIREMENTS.md"]);
//! assert_eq!(catalogue.role("somebody else").documents, ["CONVENTIONS.md", "ROADMAP.md"]);
//!
//! let own = "[roles.reviewer]\nextends = 'qa'\ninclude = ['src/**/*.rs']";
//! let catalogue = Catalogue::read(own)?;
//! assert_eq!(catalogue.role("reviewer").documents, catalogue.role("qa").documents);
//! # Ok::<(), context_compiler::catalogue::CatalogueError>(())
//! ```

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use toml::Spanned;

/// The built-in roles and layout, as text to start one's own from.
pub const BUILT_IN: &str = include_str!("builtin.toml");
/// The role of whoever is not named.
const DEFAULT: &str = "default";

/// What each role reads, and where it is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    layout: Layout,
    roles: BTreeMap<String, Role>,
}

/// Where documents and plans are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Folders in which a document is looked for, in this order; `""` is the root.
    pub folders: Vec<String>,
    /// Files in the root that stand in for a missing `CONVENTIONS.md`.
    pub conventions: Vec<String>,
    /// The order of documents. `*` stands for those not named, which are in byte order among themselves.
    pub order: Vec<String>,
    /// Folders that hold the folders of phases.
    pub phases: Vec<String>,
    /// Names of plans; `*` at the beginning stands for anything.
    pub plans: Vec<String>,
}

/// What one role reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Planning documents by name.
    pub documents: Vec<String>,
    /// Globs of source files. None by default.
    pub include: Vec<String>,
    /// Globs of files that are left out of those.
    pub exclude: Vec<String>,
    /// How much of what changed. Everything by default.
    pub diff: Diff,
    /// At most so many plans of a phase. 2 by default.
    pub plans: usize,
    /// Budget in tokens, where a request names none.
    pub budget: Option<usize>,
    /// Whether the sections of completed phases in the roadmap are there. They are by default.
    pub completed_phases: bool,
}

/// How much of what changed is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Diff {
    /// Nothing, and git is not asked.
    Off,
    /// Which files, and how many lines.
    Stat,
    /// The lines as well.
    #[default]
    Full,
}

impl Default for Role {
    fn default() -> Self {
        Self {
            documents: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            diff: Diff::default(),
            plans: 2,
            budget: None,
            completed_phases: true,
        }
    }
}

/// What a file, or a section of one, may say. What is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where documents and plans are.
    pub layout: LayoutSettings,
    /// Roles by name.
    pub roles: BTreeMap<String, RoleSettings>,
}

/// The part of [`Settings`] that is a [`Layout`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "each is the member of the same name of `Layout`")]
pub struct LayoutSettings {
    pub folders: Option<Vec<String>>,
    pub conventions: Option<Vec<String>>,
    pub order: Option<Vec<String>>,
    pub phases: Option<Vec<String>>,
    pub plans: Option<Vec<String>>,
}

/// The part of [`Settings`] that is a [`Role`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "each is the member of the same name of `Role`")]
pub struct RoleSettings {
    /// The role whose values are taken where this one has none.
    pub extends: Option<String>,
    /// Must be true to replace a role that is there already.
    #[serde(rename = "override")]
    pub replaces: bool,
    pub documents: Option<Vec<String>>,
    pub include: Option<Vec<String>>,
    pub exclude: Option<Vec<String>>,
    pub diff: Option<Diff>,
    pub plans: Option<usize>,
    pub budget: Option<usize>,
    pub completed_phases: Option<bool>,
}

/// What is wrong with a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .at.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default())]
pub struct CatalogueError {
    /// Line and column, from 1, where it was read from text.
    pub at: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
    /// The role it is about.
    role: Option<String>,
}

impl Catalogue {
    /// The roles and the layout of [`BUILT_IN`].
    pub fn built_in() -> &'static Self {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| {
            let empty = Self { layout: Layout::default(), roles: BTreeMap::new() };
            // A test reads it; without it there are no documents.
            empty.extended_by_text(BUILT_IN).unwrap_or(empty)
        })
    }

    /// The built-in catalogue, changed by `text` in TOML.
    ///
    /// # Errors
    /// The text cannot be read, or names a key that there is not; a role that exists is changed without
    /// `override`, or extends itself. With line and column.
    pub fn read(text: &str) -> Result<Self, CatalogueError> {
        Self::built_in().clone().extended_by_text(text)
    }

    fn extended_by_text(&self, text: &str) -> Result<Self, CatalogueError> {
        let settings: Settings = toml::from_str(text).map_err(|error| CatalogueError {
            at: error.span().map(|span| position(text, span.start)),
            message: error.message().to_owned(),
            role: None,
        })?;
        self.extended(settings).map_err(|mut error| {
            error.at = error.role.as_deref().and_then(|role| position_of_role(text, role));
            error
        })
    }

    /// This catalogue, changed by `settings`.
    ///
    /// # Errors
    /// As for [`read`](Self::read), without line and column.
    pub fn extended(&self, settings: Settings) -> Result<Self, CatalogueError> {
        let LayoutSettings { folders, conventions, order, phases, plans } = settings.layout;
        let kept = self.layout.clone();
        let layout = Layout {
            folders: folders.unwrap_or(kept.folders),
            conventions: conventions.unwrap_or(kept.conventions),
            order: order.unwrap_or(kept.order),
            phases: phases.unwrap_or(kept.phases),
            plans: plans.unwrap_or(kept.plans),
        };
        let error = |role: &str, message: String| CatalogueError {
            at: None,
            message: format!("role `{role}`: {message}"),
            role: Some(role.to_owned()),
        };
        for (name, role) in &settings.roles {
            if !is_role_name(name) {
                let message = "a name is 1 to 64 letters, digits, `-` and `_`".to_owned();
                return Err(error(name, message));
            }
            if self.roles.contains_key(name) && !role.replaces {
                return Err(error(name, "it exists already; to replace it say `override = true`".to_owned()));
            }
            for document in role.documents.iter().flatten() {
                if !is_beneath(document) {
                    return Err(error(name, format!("`{document}` is no path beneath the project")));
                }
            }
        }
        let paths = layout.folders.iter().chain(&layout.conventions).chain(&layout.phases);
        if let Some(bad) = paths.into_iter().find(|path| !path.is_empty() && !is_beneath(path)) {
            let message = format!("layout: `{bad}` is no path beneath the project");
            return Err(CatalogueError { at: None, message, role: None });
        }
        let mut roles = self.roles.clone();
        for name in settings.roles.keys() {
            let role = self.resolve(name, &settings.roles).map_err(|message| error(name, message))?;
            roles.insert(name.clone(), role);
        }
        Ok(Self { layout, roles })
    }

    fn resolve(&self, name: &str, added: &BTreeMap<String, RoleSettings>) -> Result<Role, String> {
        let mut way: Vec<&str> = Vec::new();
        let mut name = name;
        let mut role = loop {
            if way.contains(&name) {
                return Err(format!("it extends itself: {} -> {name}", way.join(" -> ")));
            }
            match added.get(name) {
                Some(settings) => {
                    way.push(name);
                    match &settings.extends {
                        // To extend the role that it replaces.
                        Some(base) if base == name => {
                            break self.roles.get(name).cloned().ok_or("it extends itself")?;
                        }
                        Some(base) => name = base,
                        None => break Role::default(),
                    }
                }
                None => {
                    break self
                        .roles
                        .get(name)
                        .cloned()
                        .ok_or_else(|| format!("it extends `{name}`, which does not exist"))?;
                }
            }
        };
        for name in way.into_iter().rev() {
            let Some(settings) = added.get(name).cloned() else { continue };
            role = Role {
                documents: settings.documents.unwrap_or(role.documents),
                include: settings.include.unwrap_or(role.include),
                exclude: settings.exclude.unwrap_or(role.exclude),
                diff: settings.diff.unwrap_or(role.diff),
                plans: settings.plans.unwrap_or(role.plans),
                budget: settings.budget.or(role.budget),
                completed_phases: settings.completed_phases.unwrap_or(role.completed_phases),
            };
        }
        Ok(role)
    }

    /// What `name` reads; what the role `default` reads if it is not named. Names are compared byte for byte.
    pub fn role(&self, name: &str) -> Role {
        self.roles.get(name).or_else(|| self.roles.get(DEFAULT)).cloned().unwrap_or_default()
    }

    /// Whether `name` is the name of a role.
    pub fn knows(&self, name: &str) -> bool {
        self.roles.contains_key(name)
    }

    /// The names of the roles, in byte order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.roles.keys().map(String::as_str)
    }

    /// Where documents and plans are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

impl Layout {
    /// `documents` in the order in which they are compiled, each once.
    pub(crate) fn ordered<'a>(&self, documents: &'a [String]) -> Vec<&'a str> {
        let rest = self.order.iter().position(|name| name == "*").unwrap_or(self.order.len());
        let place = |document: &str| self.order.iter().position(|name| name == document).unwrap_or(rest);
        let mut ordered: Vec<&str> = documents.iter().map(String::as_str).collect();
        ordered.sort_by(|a, b| (place(a), *a).cmp(&(place(b), *b)));
        ordered.dedup();
        ordered
    }
}

/// Whether `name` can be the name of a role: it is printed in the document.
pub(crate) fn is_role_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Whether `path` is relative and stays beneath where it begins, as a matter of text.
pub(crate) fn is_beneath(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && !path.contains(['\\', '\0'])
        && path.split('/').all(|part| part != "..")
}

/// Line and column of a byte offset, both from 1; columns are characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

fn position_of_role(text: &str, role: &str) -> Option<(usize, usize)> {
    #[derive(Deserialize)]
    struct Positions {
        #[serde(default)]
        roles: BTreeMap<Spanned<String>, toml::Value>,
    }
    let positions: Positions = toml::from_str(text).ok()?;
    let name = positions.roles.keys().find(|name| name.get_ref() == role)?;
    Some(position(text, name.span().start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(role: &str) -> Vec<String> {
        Catalogue::built_in().role(role).documents
    }

    #[test]
    fn the_built_in_roles_read_what_the_original_gave_them() {
        assert_eq!(
            documents("architect"),
            ["ARCHITECTURE.md", "STACK.md", "CONVENTIONS.md", "ROADMAP.md", "REQUIREMENTS.md"]
        );
        assert_eq!(documents("lead"), documents("architect"));
        assert_eq!(documents("dev"), ["CONVENTIONS.md", "STACK.md", "ROADMAP.md"]);
        assert_eq!(documents("senior"), documents("dev"));
        assert_eq!(documents("qa"), ["CONVENTIONS.md", "REQUIREMENTS.md"]);
        assert_eq!(documents("security"), documents("qa"));
        assert_eq!(documents("scout"), ["CONVENTIONS.md", "ROADMAP.md"]);
        assert_eq!(documents("Lead"), documents("scout"), "names are matched exactly");
    }

    #[test]
    fn documents_are_ordered_by_how_rarely_they_change() {
        let layout = Catalogue::built_in().layout();
        let mut all = documents("lead");
        all.extend(["SECURITY.md".to_owned(), "DESIGN.md".to_owned(), "STACK.md".to_owned()]);
        let order = [
            "CONVENTIONS.md",
            "STACK.md",
            "ARCHITECTURE.md",
            "REQUIREMENTS.md",
            "DESIGN.md",
            "SECURITY.md",
            "ROADMAP.md",
        ];
        assert_eq!(layout.ordered(&all), order);
    }

    #[test]
    fn a_file_adds_roles_changes_the_layout_and_replaces_a_role_only_when_it_says_so() {
        let text = "[layout]\nfolders = ['plan']\n[roles.a]\nextends = 'b'\nplans = 5\n\
                    [roles.b]\ndocuments = ['X.md']\n[roles.dev]\nextends = 'dev'\noverride = true\ndiff = 'off'";
        let catalogue = Catalogue::read(text).unwrap();
        assert_eq!(catalogue.layout().folders, ["plan"]);
        assert_eq!(catalogue.layout().plans, Catalogue::built_in().layout().plans);
        let a = catalogue.role("a");
        assert_eq!((a.documents, a.plans), (vec!["X.md".to_owned()], 5));
        assert_eq!(catalogue.role("dev").diff, Diff::Off);
        assert_eq!(catalogue.role("dev").documents, documents("dev"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_column() {
        for (text, said) in [
            ("[roles.x]\ndocumnts = []", "line 2, column 1: unknown field `documnts`"),
            ("[layout]\nfolders = 3", "line 2, column 11: invalid type"),
            ("\n[roles.dev]\nplans = 1", "line 2, column 8: role `dev`: it exists already"),
            (
                "[roles.a]\nextends='b'\n[roles.b]\nextends='a'",
                "line 1, column 8: role `a`: it extends itself: a -> b -> a",
            ),
            ("[roles.a]\nextends='zz'", "line 1, column 8: role `a`: it extends `zz`, which"),
            ("[roles.'a b']", "line 1, column 8: role `a b`: a name is"),
            ("[roles.a]\ndocuments=['../x']", "line 1, column 8: role `a`: `../x` is no path"),
            ("[layout]\nphases=['/etc']", "layout: `/etc` is no path"),
        ] {
            let error = Catalogue::read(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
