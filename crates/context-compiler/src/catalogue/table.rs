//! The catalogue itself: the roles and the layout after all settings were applied.

use super::error::{CatalogueError, CatalogueProblem};
use super::path::is_path_beneath_root;
use super::role::{RoleProfile, is_role_name};
use super::settings::{CatalogueRoleSettings, CatalogueSettings, PlanningLayout};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The built-in roles and layout in TOML, as a text to start a catalogue of your own from.
pub const BUILT_IN_CATALOGUE: &str = include_str!("builtin.toml");
/// The role that is used for a name that the catalogue does not have.
const DEFAULT_ROLE: &str = "default";

/// The documents that each role reads, and the folders where they are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    layout: PlanningLayout,
    roles: BTreeMap<String, RoleProfile>,
}

impl Catalogue {
    /// Returns the roles and the layout of [`BUILT_IN_CATALOGUE`].
    pub fn built_in() -> &'static Self {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| {
            let empty = Self { layout: PlanningLayout::default(), roles: BTreeMap::new() };
            // A library must not panic at start, so a broken file would give a catalogue without documents. A test parses
            // it.
            empty.extended_by(BUILT_IN_CATALOGUE).unwrap_or(empty)
        })
    }

    /// Parses `text` in TOML and returns the built-in catalogue with its roles and layout applied.
    ///
    /// # Errors
    /// The text is not TOML or has an unknown key; a role replaces an existing one without `override`, or extends itself;
    /// a path is absolute or leaves the project.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        Self::built_in().extended_by(text)
    }

    fn extended_by(&self, text: &str) -> Result<Self, CatalogueError> {
        let settings: CatalogueSettings =
            toml::from_str(text).map_err(|error| CatalogueError::syntax(text, &error))?;
        self.with_settings(settings).map_err(|problem| CatalogueError::in_text(text, problem))
    }

    fn with_settings(&self, settings: CatalogueSettings) -> Result<Self, CatalogueProblem> {
        let layout = settings.layout.apply_to(self.layout.clone());
        // All roles are checked before one is resolved, so that an error names the role with the fault and not one that
        // extends it.
        for (name, role) in &settings.roles {
            self.check_role(name, role)?;
        }
        let paths = [&layout.folders, &layout.conventions, &layout.orientation, &layout.phases];
        // An empty path is the root itself.
        let is_bad = |path: &&String| !path.is_empty() && !is_path_beneath_root(path);
        if let Some(path) = paths.into_iter().flatten().find(is_bad) {
            return Err(CatalogueProblem::LayoutPath { path: path.clone() });
        }
        let mut roles = self.roles.clone();
        for name in settings.roles.keys() {
            roles.insert(name.clone(), self.resolve(name, &settings.roles)?);
        }
        Ok(Self { layout, roles })
    }

    fn check_role(&self, name: &str, settings: &CatalogueRoleSettings) -> Result<(), CatalogueProblem> {
        let role = name.to_owned();
        if !is_role_name(name) {
            return Err(CatalogueProblem::RoleName { role });
        }
        if self.roles.contains_key(name) && !settings.replaces {
            return Err(CatalogueProblem::RoleExists { role });
        }
        match settings.documents.iter().flatten().find(|path| !is_path_beneath_root(path)) {
            Some(path) => Err(CatalogueProblem::DocumentPath { role, path: path.clone() }),
            None => Ok(()),
        }
    }

    /// Returns the role `role` of `added` with everything that it inherits.
    ///
    /// The chain of `extends` is followed to a role that inherits nothing or that exists already; then the settings of
    /// the chain are applied from there back to the role.
    fn resolve(
        &self,
        role: &str,
        added: &BTreeMap<String, CatalogueRoleSettings>,
    ) -> Result<RoleProfile, CatalogueProblem> {
        let mut chain: Vec<&str> = Vec::new();
        let mut name = role;
        let mut profile = loop {
            if chain.contains(&name) {
                let chain = format!("{} -> {name}", chain.join(" -> "));
                return Err(CatalogueProblem::Cycle { role: role.to_owned(), chain });
            }
            let Some(settings) = added.get(name) else {
                let existing = self.roles.get(name).cloned();
                break existing.ok_or_else(|| CatalogueProblem::UnknownBase {
                    role: role.to_owned(),
                    base: name.to_owned(),
                })?;
            };
            chain.push(name);
            match settings.extends.as_deref() {
                // A role that replaces another one of its name may extend what it replaces.
                Some(base) if base == name => {
                    let existing = self.roles.get(name).cloned();
                    break existing
                        .ok_or_else(|| CatalogueProblem::ExtendsItself { role: role.to_owned() })?;
                }
                Some(base) => name = base,
                None => break RoleProfile::default(),
            }
        };
        for name in chain.into_iter().rev() {
            if let Some(settings) = added.get(name) {
                profile = settings.clone().apply_to(profile);
            }
        }
        Ok(profile)
    }

    /// Returns the profile of the role `name`, or of the role `default` if there is none. Names are compared byte for
    /// byte.
    pub fn role(&self, name: &str) -> RoleProfile {
        self.roles.get(name).or_else(|| self.roles.get(DEFAULT_ROLE)).cloned().unwrap_or_default()
    }

    /// Returns true if the catalogue has the role `name`.
    pub fn has_role(&self, name: &str) -> bool {
        self.roles.contains_key(name)
    }

    /// Returns the names of the roles, in byte order.
    pub fn role_names(&self) -> impl Iterator<Item = &str> {
        self.roles.keys().map(String::as_str)
    }

    pub(crate) fn layout(&self) -> &PlanningLayout {
        &self.layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::DiffDetail;

    fn documents(role: &str) -> Vec<String> {
        Catalogue::built_in().role(role).documents
    }

    #[test]
    fn the_built_in_roles_read_the_documents_of_the_first_context_server() {
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
        assert_eq!(layout.sort_documents(&all), order);
    }

    #[test]
    fn a_file_adds_roles_changes_the_layout_and_replaces_a_role_only_when_it_says_so() {
        let text = "[layout]\nfolders = ['plan']\n[roles.a]\nextends = 'b'\nplans = 5\n\
                    [roles.b]\ndocuments = ['X.md']\n[roles.dev]\nextends = 'dev'\noverride = true\ndiff = 'off'";
        let catalogue = Catalogue::parse(text).unwrap();
        assert_eq!(catalogue.layout().folders, ["plan"]);
        assert_eq!(catalogue.layout().plans, Catalogue::built_in().layout().plans);
        let a = catalogue.role("a");
        assert_eq!((a.documents, a.max_plans), (vec!["X.md".to_owned()], 5));
        assert_eq!(catalogue.role("dev").diff, DiffDetail::Off);
        assert_eq!(catalogue.role("dev").documents, documents("dev"));
    }

    #[test]
    fn an_error_has_its_line_and_column() {
        for (text, message) in [
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
            let error = Catalogue::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
