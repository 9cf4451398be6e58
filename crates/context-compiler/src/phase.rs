//! The plans of a phase.

use crate::catalogue::Layout;
use crate::source::{EntryKind, Tree};

/// The plans of `phase`, in byte order of their names, and what was odd. Of several folders with its number it is the
/// first that has plans.
pub(crate) fn plans(tree: &dyn Tree, layout: &Layout, phase: u32) -> (Vec<String>, Vec<String>) {
    let (mut found, mut odd) = (None::<(String, Vec<String>)>, Vec::new());
    for base in &layout.phases {
        let folders = names(tree, base, EntryKind::Folder).unwrap_or_default();
        for name in folders.into_iter().filter(|name| number_of(name) == Some(phase)) {
            let folder = join(base, &name);
            let Some(files) = names(tree, &folder, EntryKind::File) else {
                odd.push(format!("{folder} cannot be read"));
                continue;
            };
            let is_plan = |name: &String| layout.plans.iter().any(|pattern| fits(pattern, name));
            let plans: Vec<String> =
                files.into_iter().filter(is_plan).map(|name| join(&folder, &name)).collect();
            match &found {
                _ if plans.is_empty() => {}
                None => found = Some((folder, plans)),
                Some((first, _)) => {
                    odd.push(format!("phase {phase} is {first}; {folder} has the same number"));
                }
            }
        }
    }
    (found.map(|(_, plans)| plans).unwrap_or_default(), odd)
}

/// The names of `kind`, and of links, in `folder`. In byte order, whatever the order they are listed in.
fn names(tree: &dyn Tree, folder: &str, kind: EntryKind) -> Option<Vec<String>> {
    let entries = tree.list(folder).ok()?.into_iter();
    let fitting = entries.filter(|entry| entry.kind == kind || entry.kind == EntryKind::Link);
    let mut names: Vec<String> = fitting.map(|entry| entry.name).collect();
    names.sort_unstable();
    Some(names)
}

/// The number that the name of a phase's folder begins with: of `3`, `03`, `003-name`, but not of `3.1-name`.
fn number_of(name: &str) -> Option<u32> {
    let rest = name.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = name.strip_suffix(rest)?;
    (rest.is_empty() || rest.starts_with(['-', '_'])).then(|| number.parse().ok())?
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => name == pattern,
    }
}

/// `name` in `folder`, of which `""` is the root.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_phases_by_its_number_with_or_without_a_name() {
        let names = ["3", "03", "003-auth", "3_auth", "3.1-auth", "13", "auth-3", "", "99999999999"];
        let numbers = [Some(3), Some(3), Some(3), Some(3), None, Some(13), None, None, None];
        assert_eq!(names.map(number_of), numbers);
    }

    #[test]
    fn a_plan_is_known_by_its_name() {
        assert!(fits("*-PLAN.md", "03-01-PLAN.md") && fits("plan.md", "plan.md"));
        assert!(!fits("*-PLAN.md", "03-01-PLAN.md.bak") && !fits("plan.md", "my-plan.md"));
    }
}
