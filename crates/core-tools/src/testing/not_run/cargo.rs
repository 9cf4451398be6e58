//! The tests of a cargo workspace that `cargo test` passes over.

use super::cargo_sources::{declares_test, has_documentation_tests, missing_features};
use super::test_files::folder_of;
use crate::ci::project::Project;
use crate::testing::results::TestsNotRun;
use crate::workspace::PathKind;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The number of source files of a target that are looked at.
const MAX_SOURCES: usize = 500;

/// The part of `cargo metadata` that says what `cargo test` runs.
#[derive(Deserialize)]
struct CargoMetadata {
    packages: Vec<CargoPackage>,
    workspace_members: Vec<String>,
    /// Absent before version 1.71.
    workspace_default_members: Option<Vec<String>>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct CargoPackage {
    id: String,
    name: String,
    manifest_path: PathBuf,
    features: HashMap<String, Vec<String>>,
    targets: Vec<PackageTarget>,
}

#[derive(Deserialize)]
struct PackageTarget {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
    #[serde(rename = "required-features", default)]
    required_features: Vec<String>,
    #[serde(default)]
    test: bool,
    /// Absent before version 1.37.
    #[serde(default = "yes")]
    doctest: bool,
}

fn yes() -> bool {
    true
}

/// Adds the packages of the workspace, the targets and the files of tests that a run of all tests leaves out.
pub(super) fn not_run(project: &Project, metadata: &str, found: &mut Vec<TestsNotRun>) {
    // The note about tests that were passed over is an addition. Without it the report is still true.
    let Ok(metadata) = serde_json::from_str::<CargoMetadata>(metadata) else { return };
    let root = ProjectFolder::of(project);
    let own = metadata.packages.iter().find(|package| root.is_folder_of(&package.manifest_path));
    let is_default = |package: &CargoPackage| match &metadata.workspace_default_members {
        Some(members) => members.contains(&package.id),
        // An old cargo does not say what it runs by default. It runs the package of the folder, or all of a virtual
        // workspace.
        None => own.is_none_or(|own| own.id == package.id),
    };
    // In the folder of a package that is not the root, only that package is meant.
    let is_at_root = root.path_of(&metadata.workspace_root).as_deref() == Some("");
    let is_run = |package: &CargoPackage| match own {
        Some(own) if !is_at_root => own.id == package.id,
        _ => is_default(package),
    };
    let members = metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id));
    for package in members {
        let Some(folder) = package.manifest_path.parent().and_then(|folder| root.path_of(folder)) else {
            continue;
        };
        if is_run(package) {
            CargoPackageTests { project, root: &root, package, folder: &folder }.add_not_run(found);
        } else if is_at_root && contains_tests(project, &folder) {
            let why = "`cargo test` leaves out these packages of the workspace here: `args` `--workspace` runs them";
            TestsNotRun::add(found, &package.name, why);
        }
    }
}

/// The folder of the run, as cargo names it.
pub(super) struct ProjectFolder(PathBuf);

impl ProjectFolder {
    pub(super) fn of(project: &Project) -> Self {
        Self(project.folder().to_absolute())
    }

    /// Returns a path relative to this folder, with `/` between the names.
    pub(super) fn path_of(&self, path: &Path) -> Option<String> {
        let relative = path.strip_prefix(&self.0).ok()?;
        Some(relative.to_string_lossy().replace('\\', "/"))
    }

    fn is_folder_of(&self, manifest: &Path) -> bool {
        manifest.parent().is_some_and(|folder| self.path_of(folder).as_deref() == Some(""))
    }
}

/// The tests of one package that is run.
struct CargoPackageTests<'a> {
    project: &'a Project,
    root: &'a ProjectFolder,
    package: &'a CargoPackage,
    /// Its folder, relative to the project's; empty for that folder itself.
    folder: &'a str,
}

impl CargoPackageTests<'_> {
    fn add_not_run(&self, found: &mut Vec<TestsNotRun>) {
        let enabled = self.enabled_features();
        for target in &self.package.targets {
            let is_of = |kinds: &[&str]| target.kind.iter().any(|kind| kinds.contains(&kind.as_str()));
            let is_test = is_of(&["test"]);
            let is_script = is_of(&["custom-build"]);
            let missing: Vec<_> = target
                .required_features
                .iter()
                .filter(|feature| !enabled.contains(feature.as_str()))
                .collect();
            let Some(path) = self.root.path_of(&target.src_path) else { continue };
            if !missing.is_empty() && (is_test || (target.test && self.has_tests(&path))) {
                let features =
                    missing.iter().map(|feature| format!("`{feature}`")).collect::<Vec<_>>().join(", ");
                let why =
                    format!("its `required-features` are off: {features}; `args` `--features` turns them on");
                TestsNotRun::add(found, &path, &why);
            } else if !target.test && !is_script && self.has_tests(&path) {
                let why = if is_of(&["example"]) {
                    "`cargo test` builds examples and runs no tests of theirs: `args` `--examples` runs them"
                } else if is_of(&["bench"]) {
                    "`cargo test` leaves out benchmarks: `args` `--benches` runs them"
                } else {
                    "its manifest says `test = false`"
                };
                TestsNotRun::add(found, &format!("{path} ({})", target.name), why);
            } else if target.test || is_test {
                self.add_tests_of_features(&path, &enabled, found);
            }
            // Only these have tests in their documentation.
            if !target.doctest
                && is_of(&["lib", "rlib", "dylib", "proc-macro"])
                && self.sources(&path).iter().any(|(_, text)| has_documentation_tests(text))
            {
                let why = "its manifest says `doctest = false`: the tests in its documentation do not run";
                TestsNotRun::add(found, &path, why);
            }
        }
        self.add_files_of_no_target(found);
    }

    /// Adds the files below `tests` that no target has, because the manifest turns the search for them off.
    fn add_files_of_no_target(&self, found: &mut Vec<TestsNotRun>) {
        let folder =
            if self.folder.is_empty() { "tests".to_owned() } else { format!("{}/tests", self.folder) };
        let roots: Vec<_> =
            self.package.targets.iter().filter_map(|target| self.root.path_of(&target.src_path)).collect();
        for (name, kind) in self.project.entries(&folder) {
            let path = match kind {
                PathKind::File if name.ends_with(".rs") => format!("{folder}/{name}"),
                // Cargo also makes a target of each folder below `tests` that has a `main.rs`.
                PathKind::Directory => format!("{folder}/{name}/main.rs"),
                _ => continue,
            };
            let text = self.project.read(&path).unwrap_or_default();
            if roots.contains(&path) || !declares_test(&text) {
                continue;
            }
            // A module of a target, which names it, is a part of that target.
            let stem = name.strip_suffix(".rs").unwrap_or(&name);
            let is_module = roots.iter().any(|root| {
                let text = self.project.read(root).unwrap_or_default();
                text.contains(&format!("mod {stem};"))
                    || text.contains(&format!("mod {stem} {{"))
                    || text.contains(&format!("{name}\""))
            });
            if !is_module {
                let why = "no target of the manifest has it: `autotests = false`";
                TestsNotRun::add(found, &path, why);
            }
        }
    }

    /// Returns the features that are on without an option: `default` and all that it turns on.
    fn enabled_features(&self) -> HashSet<&str> {
        let mut enabled = HashSet::new();
        let mut next = vec!["default"];
        while let Some(feature) = next.pop() {
            if enabled.insert(feature) {
                next.extend(self.package.features.get(feature).into_iter().flatten().map(String::as_str));
            }
        }
        enabled
    }

    /// Adds the sources of a target that is run whose tests need features that are off.
    fn add_tests_of_features(&self, root: &str, enabled: &HashSet<&str>, found: &mut Vec<TestsNotRun>) {
        for (path, text) in self.sources(root) {
            let missing = missing_features(&text, enabled);
            if !missing.is_empty() {
                let features = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let why = format!("it has tests for features that are off: {features}");
                TestsNotRun::add(found, &path, &why);
            }
        }
    }

    /// Returns true if a target, of which this file is the root, has tests in its sources.
    fn has_tests(&self, root: &str) -> bool {
        self.sources(root).iter().any(|(_, text)| declares_test(text))
    }

    /// Returns the paths and texts of the root of a target and of the modules that it names.
    fn sources(&self, root: &str) -> Vec<(String, String)> {
        let text = self.project.read(root).unwrap_or_default();
        // A library and a program may share a folder: only what the root names is its own.
        let folder = folder_of(root);
        let modules = text
            .lines()
            .filter_map(|line| line.trim().strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name));
        let paths = modules
            .take(MAX_SOURCES)
            .flat_map(|module| [format!("{folder}/{module}.rs"), format!("{folder}/{module}/mod.rs")]);
        let mut sources: Vec<_> =
            paths.filter_map(|path| self.project.read(&path).map(|text| (path, text))).collect();
        sources.insert(0, (root.to_owned(), text));
        sources
    }
}

/// Returns true if a package has a folder of tests, or a test in one of its sources.
fn contains_tests(project: &Project, folder: &str) -> bool {
    let at = |path: &str| if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") };
    let has_folder = project.entries(&at("tests")).iter().any(|(name, _)| name.ends_with(".rs"));
    has_folder || {
        let search = super::test_files::TestFileSearch {
            project,
            start: &at("src"),
            enters: &|_| true,
            is_test: &|name| name.ends_with(".rs"),
        };
        let sources = search.run(&mut Vec::new());
        sources
            .iter()
            .take(MAX_SOURCES)
            .any(|path| project.read(path).is_some_and(|text| declares_test(&text)))
    }
}
