//! No two files of a crate use each other, directly or through others.
//!
//! Read from the sources: a file uses another if a path in it (in a `use` or elsewhere) leads to an item that is
//! defined there; a path to a re-exported item leads to where that item is defined. `mod` lines do not count, and
//! neither do tests.

use crate::sources::{crates, files, shown};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::Visit;

type ModulePath = Vec<String>;

/// One module: where it is written, what it defines and re-exports.
#[derive(Default)]
struct SourceModule {
    file: PathBuf,
    items: BTreeSet<String>,
    /// Imported and re-exported names, and the paths that they stand for.
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    children: BTreeSet<String>,
    /// Every path that is written in the module.
    paths: BTreeSet<Vec<String>>,
}

#[derive(Default)]
struct ModuleGraph(BTreeMap<ModulePath, SourceModule>);

impl ModuleGraph {
    fn of(root: &Path) -> Self {
        let mut modules = Self::default();
        let folder = root.parent().unwrap().to_owned();
        modules.read_file(&[], root, &folder);
        modules
    }

    fn read_file(&mut self, path: &[String], file: &Path, folder: &Path) {
        let text = std::fs::read_to_string(file).unwrap();
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_items(path, file, folder, &parsed.items);
    }

    fn read_items(&mut self, path: &[String], file: &Path, folder: &Path, items: &[syn::Item]) {
        let mut module = SourceModule { file: file.to_owned(), ..SourceModule::default() };
        for item in items.iter().filter(|item| !is_test(item)) {
            let child = |name: &syn::Ident| [path, &[name.to_string()]].concat();
            match item {
                syn::Item::Mod(inner) => {
                    module.children.insert(inner.ident.to_string());
                    let below = folder.join(inner.ident.to_string());
                    match &inner.content {
                        Some((_, items)) => self.read_items(&child(&inner.ident), file, &below, items),
                        None => {
                            let plain = folder.join(format!("{}.rs", inner.ident));
                            let nested = below.join("mod.rs");
                            let found = [plain, nested].into_iter().find(|path| path.is_file());
                            if let Some(found) = found {
                                self.read_file(&child(&inner.ident), &found, &below);
                            }
                        }
                    }
                }
                syn::Item::Use(import) => module.import(&mut Vec::new(), &import.tree),
                other => {
                    if let Some(name) = item_name(other) {
                        module.items.insert(name);
                    }
                    PathCollector(&mut module.paths).visit_item(other);
                }
            }
        }
        self.0.insert(path.to_owned(), module);
    }

    /// The file in which what `path` names, written in the module `from`, is defined.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<&Path> {
        if depth > 16 {
            return None;
        }
        let mut at: ModulePath = from.to_owned();
        for (index, segment) in path.iter().enumerate() {
            let first = index == 0;
            match segment.as_str() {
                "crate" if first => at.clear(),
                "self" if first => {}
                "super" => {
                    at.pop()?;
                }
                name => {
                    let module = self.0.get(&at)?;
                    if module.items.contains(name) {
                        return Some(&module.file);
                    }
                    if module.children.contains(name) {
                        at.push(name.to_owned());
                        continue;
                    }
                    let rest = path.get(index + 1..)?;
                    if let Some(target) = module.imports.get(name) {
                        return self.resolve(&at, &[target, rest].concat(), depth + 1);
                    }
                    return module.globs.iter().find_map(|glob| {
                        self.resolve(&at, &[glob.as_slice(), &[name.to_owned()], rest].concat(), depth + 1)
                    });
                }
            }
        }
        // A path to a module itself: what is taken from it stands in a longer path.
        None
    }

    /// The files that each file uses.
    fn uses(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut uses: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (path, module) in &self.0 {
            for written in module.paths.iter().chain(module.imports.values()) {
                let target = self.resolve(path, written, 0);
                if let Some(target) = target.filter(|target| *target != module.file) {
                    uses.entry(module.file.clone()).or_default().insert(target.to_owned());
                }
            }
        }
        uses
    }
}

impl SourceModule {
    fn import(&mut self, prefix: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.import(prefix, &path.tree);
                prefix.pop();
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                if let Some(last) = prefix.last() {
                    self.imports.insert(last.clone(), prefix.clone());
                }
            }
            syn::UseTree::Name(name) => {
                let target = [prefix.as_slice(), &[name.ident.to_string()]].concat();
                self.imports.insert(name.ident.to_string(), target);
            }
            syn::UseTree::Rename(rename) => {
                let target = [prefix.as_slice(), &[rename.ident.to_string()]].concat();
                self.imports.insert(rename.rename.to_string(), target);
            }
            syn::UseTree::Glob(_) => self.globs.push(prefix.clone()),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(prefix, tree);
                }
            }
        }
    }
}

/// Collects the paths of an item, and of what stands in its macros as far as that reads as paths.
struct PathCollector<'a>(&'a mut BTreeSet<Vec<String>>);

impl<'ast> Visit<'ast> for PathCollector<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(item) {
            syn::visit::visit_item(self, item);
        }
    }
}

fn is_test(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
            })
    })
}

fn item_name(item: &syn::Item) -> Option<String> {
    Some(match item {
        syn::Item::Const(item) => item.ident.to_string(),
        syn::Item::Enum(item) => item.ident.to_string(),
        syn::Item::Fn(item) => item.sig.ident.to_string(),
        syn::Item::Macro(item) => item.ident.as_ref()?.to_string(),
        syn::Item::Static(item) => item.ident.to_string(),
        syn::Item::Struct(item) => item.ident.to_string(),
        syn::Item::Trait(item) => item.ident.to_string(),
        syn::Item::Type(item) => item.ident.to_string(),
        syn::Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// The groups of files that can reach each other (Tarjan's strongly connected components, by plain reachability: a
/// crate has a few hundred files).
fn circles(uses: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> Vec<BTreeSet<PathBuf>> {
    let reachable = |from: &PathBuf| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            for next in uses.get(file).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&PathBuf, BTreeSet<PathBuf>> =
        uses.keys().map(|file| (file, reachable(file))).collect();
    let mut circles: Vec<BTreeSet<PathBuf>> = Vec::new();
    for (file, from_it) in &reached {
        if !from_it.contains(*file) || circles.iter().any(|circle| circle.contains(*file)) {
            continue;
        }
        let circle = from_it
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*file)))
            .cloned()
            .collect();
        circles.push(circle);
    }
    circles
}

#[test]
fn no_two_files_use_each_other() {
    let mut wrong = Vec::new();
    let mut arrows = 0;
    for krate in crates() {
        let root = ["src/lib.rs", "src/main.rs"].map(|name| krate.join(name));
        let Some(root) = root.iter().find(|path| path.is_file()) else { continue };
        let uses = ModuleGraph::of(root).uses();
        arrows += uses.values().map(BTreeSet::len).sum::<usize>();
        for circle in circles(&uses) {
            let names: Vec<String> = circle.iter().map(|path| shown(path)).collect();
            let ties = circle.iter().flat_map(|file| {
                let used = uses.get(file).into_iter().flatten().filter(|used| circle.contains(*used));
                used.map(move |used| format!("    {} uses {}", shown(file), shown(used)))
            });
            wrong.push(format!("{}\n{}", names.join(", "), ties.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(arrows > 500, "only {arrows} uses of one file by another were found");
    assert!(wrong.is_empty(), "{} circles:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_circle_would_be_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod a; mod b; mod c; pub use a::A; pub struct Shared;");
    write("a.rs", "use crate::b::B; pub struct A(B);");
    write("b.rs", "pub struct B; impl B { fn a(&self, _: &super::A) {} }");
    write("c.rs", "use super::a::A; struct C(A);");
    let uses = ModuleGraph::of(&folder.path().join("lib.rs")).uses();
    let found = circles(&uses);
    let expected: BTreeSet<PathBuf> = ["a.rs", "b.rs"].map(|name| folder.path().join(name)).into();
    assert_eq!(found, [expected]);
    assert_eq!(files(folder.path(), "rs").len(), 4);
}
