//! The selection of a file or a folder in cargo: by target, and by the path of a module.

use crate::ci::project::Project;
use crate::testing::error::TestError;
use crate::testing::target::TestTarget;
use toml::{Table, Value};

/// The options and the filter that select tests in a cargo package.
pub(super) struct CargoSelection {
    /// The options that select targets; all targets if empty.
    pub(super) options: Vec<String>,
    /// The filter of test names within these targets.
    pub(super) filter: Option<String>,
}

/// A target of a package: what cargo compiles to one program or library.
struct CargoTarget {
    /// The options that select it.
    options: Vec<String>,
    /// The file that is the root of its modules.
    root: String,
}

impl CargoTarget {
    fn new(option: &str, name: &str, root: &str) -> Self {
        Self { options: vec![option.to_owned(), name.to_owned()], root: root.to_owned() }
    }

    /// Returns the folder of its modules.
    fn folder(&self) -> &str {
        self.root.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// A kind of target, beside the library.
struct TargetKind {
    /// The array of tables in the manifest.
    table: &'static str,
    /// The option that selects one.
    option: &'static str,
    /// The folder in which cargo discovers them.
    folder: &'static str,
    /// The key of the package that turns the discovery off.
    discovery_key: &'static str,
}

const KINDS: [TargetKind; 4] = [
    TargetKind { table: "bin", option: "--bin", folder: "src/bin", discovery_key: "autobins" },
    TargetKind { table: "test", option: "--test", folder: "tests", discovery_key: "autotests" },
    TargetKind { table: "example", option: "--example", folder: "examples", discovery_key: "autoexamples" },
    TargetKind { table: "bench", option: "--bench", folder: "benches", discovery_key: "autobenches" },
];

/// Returns the targets of a package: those with a path in its manifest, and those that cargo discovers.
fn targets(project: &Project) -> Vec<CargoTarget> {
    let manifest = project.read("Cargo.toml").unwrap_or_default();
    // A manifest that cannot be read leaves the discovery by folders. Cargo itself reports what is wrong in it.
    let manifest: Table = manifest.parse().unwrap_or_default();
    let mut targets = Vec::new();
    let library = manifest.get("lib").and_then(|lib| text_of(lib, "path"));
    let library = library.unwrap_or_else(|| "src/lib.rs".to_owned());
    if project.contains(&library) {
        targets.push(CargoTarget { options: vec!["--lib".to_owned()], root: library });
    }
    for kind in &KINDS {
        add_listed(kind, &manifest, &mut targets);
        add_discovered(kind, &manifest, project, &mut targets);
    }
    targets
}

fn text_of(table: &Value, key: &str) -> Option<String> {
    table.get(key)?.as_str().map(str::to_owned)
}

fn add_listed(kind: &TargetKind, manifest: &Table, targets: &mut Vec<CargoTarget>) {
    for target in manifest.get(kind.table).and_then(Value::as_array).into_iter().flatten() {
        if let (Some(name), Some(path)) = (text_of(target, "name"), text_of(target, "path")) {
            targets.push(CargoTarget::new(kind.option, &name, path.trim_start_matches("./")));
        }
    }
}

fn add_discovered(kind: &TargetKind, manifest: &Table, project: &Project, targets: &mut Vec<CargoTarget>) {
    let package = manifest.get("package");
    if package.and_then(|package| package.get(kind.discovery_key)?.as_bool()) == Some(false) {
        return;
    }
    let mut add = |options: Vec<String>, root: String| {
        // A target that the manifest lists keeps its own name, although cargo would also discover its file.
        if project.contains(&root) && targets.iter().all(|target| target.root != root) {
            targets.push(CargoTarget { options, root });
        }
    };
    if kind.table == "bin" {
        let name = package.and_then(|package| text_of(package, "name"));
        let options = name.map_or_else(|| vec!["--bins".into()], |name| vec![kind.option.into(), name]);
        add(options, "src/main.rs".to_owned());
    }
    let folder = kind.folder;
    for name in project.entry_names(folder) {
        match name.strip_suffix(".rs") {
            Some(stem) => add(vec![kind.option.into(), stem.to_owned()], format!("{folder}/{name}")),
            None => add(vec![kind.option.into(), name.clone()], format!("{folder}/{name}/main.rs")),
        }
    }
}

impl CargoSelection {
    /// Returns what selects the requested file, folder or name.
    pub(super) fn of(target: &TestTarget) -> Result<Self, TestError> {
        let filter = target.filter.pattern(str::to_owned);
        let Some(path) = target.filter.path() else {
            return Ok(Self { options: Vec::new(), filter });
        };
        let targets = targets(&target.project);
        let options = |is_selected: &dyn Fn(&CargoTarget) -> bool| -> Vec<String> {
            targets
                .iter()
                .filter(|target| is_selected(target))
                .flat_map(|target| target.options.clone())
                .collect()
        };
        let is_folder = target.filter.is_folder;
        let within = format!("{path}/");
        // The root file of a target selects the target itself. Only other files are modules.
        let whole = options(&|target| target.root == path || (is_folder && target.root.starts_with(&within)));
        if !whole.is_empty() {
            return Ok(Self { options: whole, filter });
        }
        // A module: of every target whose root is in the nearest folder above it.
        let is_above = |folder: &str| folder.is_empty() || path.starts_with(&format!("{folder}/"));
        let folders = targets.iter().map(CargoTarget::folder).filter(|folder| is_above(folder));
        let is_module = is_folder || path.ends_with(".rs");
        let (Some(folder), true) = (folders.max_by_key(|folder| folder.len()), is_module) else {
            return Err(target.cannot_select("the project's folder, or a file or folder of its targets"));
        };
        let module = path[folder.len()..].trim_start_matches('/').trim_end_matches(".rs");
        let module = module.strip_suffix("/mod").unwrap_or(module).replace('/', "::");
        // The separator at the end keeps `parse` from matching the tests of a module `parser`.
        let filter = Some(format!("{module}::{}", filter.unwrap_or_default()));
        Ok(Self { options: options(&|target| target.folder() == folder), filter })
    }
}
