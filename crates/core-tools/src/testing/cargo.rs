//! How cargo selects a file or a folder: by target, and by the path of a module.

use super::plan::cannot;
use super::select::{Choice, TestError};
use crate::ci::project::Project;

/// What cargo makes a program of.
struct Target {
    /// Its options.
    options: Vec<String>,
    /// The file that is the root of its modules.
    root: String,
}

impl Target {
    fn new(option: &str, name: &str, root: &str) -> Self {
        Self { options: vec![option.to_owned(), name.to_owned()], root: root.to_owned() }
    }

    /// Where its modules lie.
    fn folder(&self) -> &str {
        self.root.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// The tables of targets, the folders that they are found in, and the setting that they are not.
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("bin", "--bin", "src/bin", "autobins"),
    ("test", "--test", "tests", "autotests"),
    ("example", "--example", "examples", "autoexamples"),
    ("bench", "--bench", "benches", "autobenches"),
];

/// The targets of a package: those that its manifest gives a path, and those that lie where cargo looks.
fn targets(project: &Project) -> Vec<Target> {
    let manifest = project.read("Cargo.toml").unwrap_or_default();
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let package = manifest.get("package");
    let text = |table: &toml::Value, key: &str| table.get(key)?.as_str().map(str::to_owned);
    let mut found: Vec<Target> = Vec::new();
    let library = manifest.get("lib").and_then(|lib| text(lib, "path"));
    let library = library.unwrap_or_else(|| "src/lib.rs".to_owned());
    if project.has(&library) {
        found.push(Target { options: vec!["--lib".to_owned()], root: library });
    }
    for (table, option, folder, setting) in KINDS {
        for target in manifest.get(table).and_then(toml::Value::as_array).into_iter().flatten() {
            if let (Some(name), Some(path)) = (text(target, "name"), text(target, "path")) {
                found.push(Target::new(option, &name, path.trim_start_matches("./")));
            }
        }
        if package.and_then(|package| package.get(setting)?.as_bool()) == Some(false) {
            continue;
        }
        let mut add = |options: Vec<String>, root: String| {
            if project.has(&root) && found.iter().all(|target| target.root != root) {
                found.push(Target { options, root });
            }
        };
        if table == "bin" {
            let name = package.and_then(|package| text(package, "name"));
            let options = name.map_or_else(|| vec!["--bins".into()], |name| vec![option.into(), name]);
            add(options, "src/main.rs".to_owned());
        }
        for name in project.names(folder) {
            match name.strip_suffix(".rs") {
                Some(stem) => add(vec![option.into(), stem.to_owned()], format!("{folder}/{name}")),
                None => add(vec![option.into(), name.clone()], format!("{folder}/{name}/main.rs")),
            }
        }
    }
    found
}

/// The options that select the targets of what was asked for, and the filter of names within them.
pub(super) fn selection(choice: &Choice) -> Result<(Vec<String>, Option<String>), TestError> {
    let (path, name) = (choice.part.path.as_str(), choice.part.name.clone());
    if path.is_empty() {
        return Ok((Vec::new(), name));
    }
    let targets = targets(&choice.project);
    let options = |wanted: &dyn Fn(&Target) -> bool| {
        targets.iter().filter(|target| wanted(target)).flat_map(|target| target.options.clone()).collect()
    };
    let within = format!("{path}/");
    let whole: Vec<_> =
        options(&|target| target.root == path || (choice.part.folder && target.root.starts_with(&within)));
    if !whole.is_empty() {
        return Ok((whole, name));
    }
    // A module, of every target whose root lies nearest above it.
    let above = |folder: &str| folder.is_empty() || path.starts_with(&format!("{folder}/"));
    let folders = targets.iter().map(Target::folder).filter(|folder| above(folder));
    let is_module = choice.part.folder || path.ends_with(".rs");
    let (Some(folder), true) = (folders.max_by_key(|folder| folder.len()), is_module) else {
        return Err(cannot(choice, "the project's folder, or a file or folder of its targets"));
    };
    let module = path[folder.len()..].trim_start_matches('/').trim_end_matches(".rs");
    let module = module.strip_suffix("/mod").unwrap_or(module).replace('/', "::");
    let filter = format!("{module}::{}", name.unwrap_or_default());
    Ok((options(&|target| target.folder() == folder), Some(filter)))
}

/// `package::binary test`, as nextest's reports have it, as an expression of its filters.
pub(super) fn nextest_name(name: &str) -> Option<String> {
    let (binary, test) = name.split_once(' ')?;
    let (package, binary) = binary.split_once("::")?;
    let plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ':'))
    };
    let all = [package, binary, test].into_iter().all(plain);
    all.then(|| format!("package(={package}) & binary(={binary}) & test(={test})"))
}
