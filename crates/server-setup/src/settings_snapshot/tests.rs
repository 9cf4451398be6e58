#![allow(clippy::disallowed_methods, reason = "the tests write as a confined command would")]

use super::put_back::MAX_TOLD;
use super::*;
use std::fs;
#[cfg(unix)]
use std::os::unix::fs::symlink;

struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        for (path, content) in files {
            project.write(path, content);
        }
        project
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    fn write(&self, relative: &str, content: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn text(&self, relative: &str) -> Option<String> {
        fs::read_to_string(self.path(relative)).ok()
    }

    #[cfg(unix)]
    fn link(&self, target: &str, relative: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn take(&self) -> SettingsSnapshot {
        SettingsSnapshot::take(&[self.folder.path().to_owned()], &[])
    }
}

fn paths(changes: &[(String, Option<Error>)]) -> Vec<&str> {
    assert!(changes.iter().all(|(_, failure)| failure.is_none()), "{changes:?}");
    changes.iter().map(|(path, _)| path.as_str()).collect()
}

#[test]
fn changed_added_and_removed_files_are_as_before() {
    let project = Project::new(&[(".claude/skills/a/SKILL.md", "a"), (".claude/hooks/b.sh", "b")]);
    let snapshot = project.take();
    project.write(".claude/skills/a/SKILL.md", "changed");
    project.write(".claude/skills/x/y/new", "new");
    project.write(".mcp.json", "{}");
    fs::remove_dir_all(project.path(".claude/hooks")).unwrap();
    assert_eq!(paths(&snapshot.restore()).len(), 4);
    assert_eq!(project.text(".claude/skills/a/SKILL.md").unwrap(), "a");
    assert_eq!(project.text(".claude/hooks/b.sh").unwrap(), "b");
    assert_eq!(project.text(".claude/skills/x/y/new"), None);
    assert_eq!(project.text(".mcp.json"), None);
    assert!(snapshot.restore().is_empty());
}

#[cfg(unix)]
#[test]
fn a_link_that_the_command_makes_is_removed_and_what_it_leads_to_stays() {
    let project =
        Project::new(&[("docs/skills/a.md", "a"), ("docs/settings.json", "{}"), ("conf/mcp.json", "{}")]);
    let snapshot = project.take();
    project.link("../docs/skills", ".claude/skills");
    project.link("docs", ".gemini");
    project.link("conf", ".vscode");
    assert_eq!(paths(&snapshot.restore()), [".claude/skills", ".gemini", ".vscode"]);
    for (link, file) in [
        (".claude/skills", "docs/skills/a.md"),
        (".gemini", "docs/settings.json"),
        (".vscode", "conf/mcp.json"),
    ] {
        assert!(fs::symlink_metadata(project.path(link)).is_err(), "{link}");
        assert!(project.text(file).is_some(), "{file}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_was_moved_and_linked_is_put_back() {
    let project = Project::new(&[(".claude/skills/a.md", "a"), (".claude/settings.json", "{}")]);
    let snapshot = project.take();
    fs::rename(project.path(".claude"), project.path("elsewhere")).unwrap();
    project.link("elsewhere", ".claude");
    project.write("elsewhere/skills/a.md", "changed");
    snapshot.restore();
    assert!(!project.path(".claude").is_symlink());
    assert_eq!(project.text(".claude/skills/a.md").unwrap(), "a");
    assert_eq!(project.text(".claude/settings.json").unwrap(), "{}");
    assert_eq!(project.text("elsewhere/skills/a.md").unwrap(), "changed");
}

#[cfg(unix)]
#[test]
fn links_of_the_user_stay_and_what_they_lead_to_is_put_back() {
    let project =
        Project::new(&[("own/skills/a.md", "a"), ("own/mcp.json", "{}"), ("own/claude/agents/b.md", "b")]);
    project.link("../own/skills", ".agents/skills");
    project.link("own/mcp.json", ".mcp.json");
    project.link("own/claude", ".claude");
    project.link("nowhere", ".codex");
    let snapshot = project.take();
    assert!(snapshot.restore().is_empty(), "nothing was changed");
    project.write("own/skills/a.md", "changed");
    project.write("own/skills/new.md", "new");
    project.write("own/mcp.json", "changed");
    project.write("own/claude/agents/new.md", "new");
    assert_eq!(paths(&snapshot.restore()).len(), 4);
    for link in [".agents/skills", ".mcp.json", ".claude", ".codex"] {
        assert!(project.path(link).is_symlink(), "{link}");
    }
    assert_eq!(project.text(".agents/skills/a.md").unwrap(), "a");
    assert_eq!(project.text(".mcp.json").unwrap(), "{}");
    assert_eq!(project.text(".claude/agents/b.md").unwrap(), "b");
    assert_eq!(project.text("own/skills/new.md"), None);
    assert_eq!(project.text("own/claude/agents/new.md"), None);
}

#[cfg(unix)]
#[test]
fn what_stands_in_the_place_of_a_link_of_the_user_is_removed_and_told() {
    let project = Project::new(&[("own/a.md", "a"), ("other/evil.md", "evil"), ("own/mcp.json", "{}")]);
    project.link("../own", ".claude/skills");
    project.link("../own", ".codex/skills");
    project.link("own/mcp.json", ".mcp.json");
    let snapshot = project.take();
    fs::remove_file(project.path(".claude/skills")).unwrap();
    project.link("../other", ".claude/skills");
    fs::remove_file(project.path(".codex/skills")).unwrap();
    project.write(".codex/skills/evil.md", "evil");
    fs::remove_file(project.path(".mcp.json")).unwrap();
    project.write(".mcp.json", "evil");
    let changes = snapshot.restore();
    assert!(
        changes.iter().any(|(path, failure)| path == ".claude/skills" && failure.is_some()),
        "{changes:?}"
    );
    assert!(!project.path(".claude/skills").is_symlink());
    assert_eq!(project.text(".codex/skills/evil.md"), None);
    assert_eq!(project.text(".mcp.json"), None);
    assert_eq!(project.text("other/evil.md").unwrap(), "evil");
    assert_eq!(project.text("own/a.md").unwrap(), "a");
}

#[test]
fn many_large_files_of_a_command_are_removed_without_being_read() {
    const FILES: usize = 2500;
    let project = Project::new(&[(".claude/skills/a.md", "a")]);
    let snapshot = project.take();
    fs::create_dir_all(project.path(".claude/hooks/x")).unwrap();
    for number in 0..FILES {
        let folder = if number % 2 == 0 { ".claude/hooks" } else { ".claude/hooks/x" };
        let file = fs::File::create(project.path(&format!("{folder}/{number}"))).unwrap();
        // A sparse file, whose content must not be read to know that it is new.
        file.set_len(1 << 30).unwrap();
    }
    let changes = snapshot.restore();
    assert_eq!(changes.len(), MAX_TOLD + 1);
    assert_eq!(changes.last().unwrap().0, format!("{} further files of clients", FILES - MAX_TOLD));
    assert_eq!(fs::read_dir(project.path(".claude/hooks/x")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(project.path(".claude/hooks")).unwrap().count(), 1);
}

#[test]
fn a_large_folder_takes_no_protection_from_another() {
    let project = Project::new(&[(".windsurf/workflows/a.md", "a")]);
    fs::create_dir_all(project.path(".claude/plugins")).unwrap();
    for number in 0..100 {
        fs::write(project.path(&format!(".claude/plugins/{number}")), vec![b'x'; 1 << 20]).unwrap();
    }
    let snapshot = project.take();
    project.write(".claude/plugins/new", "new");
    project.write(".windsurf/workflows/a.md", "changed");
    project.write(".windsurf/workflows/new.md", "new");
    assert_eq!(paths(&snapshot.restore()).len(), 3);
    assert_eq!(project.text(".claude/plugins/new"), None);
    assert_eq!(project.text(".windsurf/workflows/a.md").unwrap(), "a");
    assert_eq!(project.text(".windsurf/workflows/new.md"), None);
}

#[test]
fn an_opened_file_opens_no_other_one_of_its_folder() {
    let project = Project::new(&[(".claude/commands/a.md", "a"), (".claude/commands/b.md", "b")]);
    let opened = [".claude/commands/a.md", ".claude/commands/new.md", ".claude/agents", ".envrc"];
    let opened = opened.map(|path| project.path(path));
    let snapshot = SettingsSnapshot::take(&[project.folder.path().to_owned()], &opened);
    for path in ["commands/a.md", "commands/b.md", "commands/new.md", "commands/evil.md", "agents/x/new.md"] {
        project.write(&format!(".claude/{path}"), "changed");
    }
    project.write(".envrc", "changed");
    assert_eq!(paths(&snapshot.restore()), [".claude/commands/evil.md", ".claude/commands/b.md"]);
    for path in [".claude/commands/a.md", ".claude/commands/new.md", ".claude/agents/x/new.md", ".envrc"] {
        assert_eq!(project.text(path).unwrap(), "changed", "{path}");
    }
}

#[cfg(unix)]
#[test]
fn an_opened_file_is_found_behind_links_of_the_user() {
    let project = Project::new(&[("own/commands/a.md", "a"), ("own/b.md", "b")]);
    project.link("../own/commands", ".claude/commands");
    project.link("../b.md", "own/commands/b.md");
    let opened = [".claude/commands/a.md", ".claude/commands/b.md"].map(|path| project.path(path));
    let snapshot = SettingsSnapshot::take(&[project.folder.path().to_owned()], &opened);
    project.write("own/commands/a.md", "changed");
    fs::remove_file(project.path("own/commands/b.md")).unwrap();
    project.write("own/commands/b.md", "changed");
    project.write("own/commands/evil.md", "evil");
    assert_eq!(paths(&snapshot.restore()).len(), 1);
    assert_eq!(project.text(".claude/commands/a.md").unwrap(), "changed");
    assert_eq!(project.text(".claude/commands/b.md").unwrap(), "changed");
    assert_eq!(project.text("own/commands/evil.md"), None);
}
