//! Repositories and arguments that want more than they may have.

use crate::git::{connect, hook, init, repository};
use integration_tests::{Project, Wire};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;

/// A call of each tool that reads, and of what it takes.
fn reads() -> Vec<(&'static str, Value)> {
    vec![
        ("git_status", json!({})),
        ("git_log", json!({})),
        ("git_log", json!({"paths": ["a.txt"]})),
        ("git_diff", json!({})),
        ("git_diff", json!({"staged": true})),
        ("git_diff", json!({"revision": "HEAD"})),
        ("git_diff", json!({"revision": "HEAD~1..HEAD"})),
        ("git_show", json!({})),
        ("git_show", json!({"revision": "HEAD:a.txt"})),
        ("git_show", json!({"revision": "HEAD:"})),
        ("git_blame", json!({"path": "a.txt"})),
        ("git_blame", json!({"path": "a.txt", "revision": "HEAD"})),
        ("git_list_branches", json!({})),
        ("git_current_branch", json!({})),
        ("git_stash", json!({})),
    ]
}

/// A repository that names a program wherever it can, and the file that the program would write.
fn armed() -> (Project, std::path::PathBuf, tempfile::TempDir) {
    let (project, _) = repository();
    let (script, marker, outside) = script();
    project.write("a.txt", "one\n2\nthree\n");
    project.git(&["commit", "--all", "--quiet", "--message=second"]);
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.askPass",
        "core.sshCommand",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "gpg.program",
        "gpg.ssh.program",
        "credential.helper",
        "interactive.diffFilter",
        "pager.log",
        "pager.diff",
        "pager.status",
        "alias.status",
        "uploadpack.packObjectsHook",
        "trailer.x.command",
    ] {
        project.git(&["config", key, &script]);
    }
    project.git(&["config", "filter.evil.required", "true"]);
    project.git(&["config", "log.showSignature", "true"]);
    project.git(&["config", "color.ui", "always"]);
    project.git(&["config", "status.submoduleSummary", "true"]);
    std::fs::write(project.join(".git/info/attributes"), "* filter=evil diff=evil merge=evil\n").unwrap();
    for name in
        ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"]
    {
        hook(&project, name, &format!("echo {name} >> {}", marker.display()));
    }
    // Stat information that is out of date makes git look at contents, through filters.
    project.write("a.txt", "one\n2\n3\n");
    (project, marker, outside)
}

#[test]
fn what_reads_runs_no_program_of_the_repository() {
    let (project, marker, _outside) = armed();
    let mut wire = connect(&project, &[]);
    for (tool, arguments) in reads() {
        let text = wire.text(tool, arguments.clone());
        assert!(!marker.exists(), "{tool} {arguments} ran {}", std::fs::read_to_string(&marker).unwrap());
        assert!(!text.contains('\u{1b}'), "{tool} is coloured: {text}");
    }
    assert!(wire.text("git_diff", json!({})).contains("\n+3"));
    // The trap works: git itself falls into it.
    let _ = std::process::Command::new("git").arg("status").current_dir(project.path()).output().unwrap();
    assert!(marker.exists());
}

/// Where a role is not confined, the git that `compile_context` asks is not either: its own settings keep it from running
/// what a repository names.
#[test]
fn a_context_is_compiled_without_a_program_of_the_repository_confined_or_not() {
    for arguments in [&[] as &[&str], &["--role", "dev"]] {
        let (project, marker, _outside) = armed();
        let mut wire = connect(&project, arguments);
        let answer = wire.call("compile_context", json!({"role": "dev"}));
        assert!(answer["isError"] == false && answer.to_string().contains("+3"), "{answer}");
        assert!(!marker.exists(), "{arguments:?} ran {}", std::fs::read_to_string(&marker).unwrap());
    }
}

#[test]
fn filters_in_a_file_that_is_included_are_found_too() {
    let (project, marker, outside) = armed();
    std::fs::rename(project.join(".git/config"), project.join(".git/more")).unwrap();
    std::fs::write(
        project.join(".git/config"),
        "[core]\n\trepositoryformatversion = 0\n[InClude]\n\tpath = more\n",
    )
    .unwrap();
    let mut wire = connect(&project, &[]);
    for (tool, arguments) in reads() {
        wire.text(tool, arguments.clone());
        assert!(!marker.exists(), "{tool} {arguments}");
    }
    assert!(wire.failure("git_add", json!({"files": ["a.txt"]})).contains("filter.evil.clean"));
    drop(outside);
}

#[test]
fn a_filter_whose_name_is_not_utf_8_is_refused() {
    let (project, marker, _outside) = armed();
    let config = project.join(".git/config");
    let text = std::fs::read_to_string(&config).unwrap().replace("\"evil\"", "\"\u{ff}\"");
    // Latin-1, as git takes any bytes.
    let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    std::fs::write(&config, bytes).unwrap();
    std::fs::write(project.join(".git/info/attributes"), b"* filter=\xff\n").unwrap();
    let mut wire = connect(&project, &[]);
    for tool in ["git_diff", "git_status"] {
        assert!(wire.failure(tool, json!({})).contains("not UTF-8"), "{tool}");
        assert!(!marker.exists(), "{tool} ran {}", std::fs::read_to_string(&marker).unwrap());
    }
}

#[test]
fn what_writes_refuses_filters_of_the_repository_and_runs_no_hook() {
    let (project, marker, _outside) = armed();
    let mut wire = connect(&project, &[]);
    for (tool, arguments) in [
        ("git_add", json!({"files": ["a.txt"]})),
        ("git_checkout", json!({"branch": "HEAD~1"})),
        ("git_restore", json!({"paths": ["a.txt"]})),
        ("git_stash", json!({"action": "push"})),
    ] {
        let text = wire.failure(tool, arguments);
        assert!(text.contains("filter.evil.clean") && text.contains("merge.evil.driver"), "{tool}: {text}");
        assert!(!marker.exists(), "{tool}");
    }
    for name in ["filter.evil", "merge.evil"] {
        project.git(&["config", "--remove-section", name]);
    }
    // What the trap was set off by while it was taken down.
    let _ = std::fs::remove_file(&marker);
    for (tool, arguments) in [
        ("git_create_branch", json!({"name": "new"})),
        ("git_add", json!({"files": ["a.txt"]})),
        ("git_restore", json!({"paths": ["a.txt"], "staged": true})),
        ("git_stash", json!({"action": "push"})),
        ("git_checkout", json!({"branch": "new"})),
        ("git_checkout", json!({"branch": "HEAD~1"})),
        ("git_checkout", json!({"branch": "main"})),
        ("git_stash", json!({"action": "pop"})),
        ("git_restore", json!({"paths": ["a.txt"]})),
    ] {
        wire.text(tool, arguments.clone());
        assert!(!marker.exists(), "{tool} ran {}", std::fs::read_to_string(&marker).unwrap());
    }
}

#[test]
fn what_a_submodule_names_is_not_run_either() {
    let (project, marker, _outside) = armed();
    init(&project, "module");
    project.write("module/m.txt", "m\n");
    project.git_in("module", &["add", "."]);
    project.git_in("module", &["commit", "--quiet", "--message=module"]);
    std::fs::copy(project.join(".git/config"), project.join("module/.git/config")).unwrap();
    std::fs::create_dir_all(project.join("module/.git/info")).unwrap();
    std::fs::write(project.join("module/.git/info/attributes"), "* filter=evil\n").unwrap();
    project.git(&[
        "-c",
        "core.fsmonitor=false",
        "-c",
        "filter.evil.process=",
        "-c",
        "filter.evil.required=false",
        "update-index",
        "--add",
        "--cacheinfo",
        "160000,1111111111111111111111111111111111111111,module",
    ]);
    let _ = std::fs::remove_file(&marker);
    project.write("module/m.txt", "changed\n");
    let mut wire = connect(&project, &[]);
    for (tool, arguments) in reads() {
        wire.text(tool, arguments.clone());
        assert!(!marker.exists(), "{tool} {arguments}");
    }
}

/// A script that leaves a mark, the mark, and the folder of both.
fn script() -> (String, std::path::PathBuf, tempfile::TempDir) {
    let outside = tempfile::tempdir().unwrap();
    let marker = outside.path().join("marker");
    let script = outside.path().join("evil.sh");
    std::fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", marker.display())).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (script.to_str().unwrap().to_owned(), marker, outside)
}

/// A repository in `folder`, whose attributes name a filter.
fn filtered(project: &Project, folder: &str) {
    init(project, folder);
    project.write(&format!("{folder}/.gitattributes"), "f filter=evil\n");
    project.write(&format!("{folder}/f"), "f\n");
    project.git_in(folder, &["add", "."]);
    project.git_in(folder, &["commit", "--quiet", "--message=module"]);
}

/// Lists the calls that write, and could look into submodules on the way.
fn writes() -> Vec<(&'static str, Value)> {
    vec![
        ("git_add", json!({"files": ["."]})),
        ("git_add", json!({"files": ["module"]})),
        ("git_restore", json!({"paths": ["."], "staged": true})),
        ("git_restore", json!({"paths": ["a.txt"]})),
        ("git_stash", json!({"action": "push"})),
        ("git_stash", json!({"action": "pop"})),
        ("git_checkout", json!({"branch": "other"})),
    ]
}

#[test]
fn what_writes_runs_no_filter_of_a_submodule_however_deep() {
    for deep in [false, true] {
        let (project, _) = repository();
        let (script, marker, _outside) = script();
        filtered(&project, "module");
        project.git_in("module", &["config", "core.fsmonitor", &script]);
        let armed = if deep { "module/inner" } else { "module" };
        if deep {
            filtered(&project, "module/inner");
            project.git_in("module", &["-c", "core.fsmonitor=false", "add", "inner"]);
        }
        project.git(&["-c", "core.fsmonitor=false", "add", "module"]);
        let settings = "[submodule \"m\"]\n\tpath = module\n\turl = ./m\n\tignore = none\n";
        project.write(".gitmodules", settings);
        project.git(&["-c", "core.fsmonitor=false", "add", ".gitmodules"]);
        project.git(&["commit", "--quiet", "--message=module"]);
        project.git(&["branch", "other"]);
        let mut wire = connect(&project, &[]);
        let touch = || {
            let file =
                std::fs::File::options().write(true).open(project.join(&format!("{armed}/f"))).unwrap();
            file.set_modified(std::time::SystemTime::now()).unwrap();
            project.write("a.txt", "changed\n");
        };
        // A submodule that names nothing is in nobody's way.
        for (tool, arguments) in writes() {
            touch();
            if arguments["action"] == "pop" {
                project.git(&["-c", "core.fsmonitor=false", "restore", "a.txt"]);
            }
            wire.text(tool, arguments.clone());
            assert!(!marker.exists(), "{tool} {arguments}");
        }
        project.git(&["switch", "--quiet", "main"]);
        project.git_in(armed, &["config", "filter.evil.clean", &script]);
        for (tool, arguments) in writes() {
            touch();
            let text = wire.failure(tool, arguments.clone());
            assert!(!marker.exists(), "{tool} {arguments}");
            if arguments["action"] != "pop" {
                assert!(text.contains(&format!("filter.evil.clean of {armed}")), "{tool}: {text}");
            }
        }
        for (tool, arguments) in reads() {
            touch();
            wire.text(tool, arguments.clone());
            assert!(!marker.exists(), "{tool} {arguments}");
        }
        project.git(&["-c", "core.fsmonitor=false", "update-index", "a.txt"]);
        wire.text("git_commit", json!({"message": "staged"}));
        assert!(!marker.exists());
        // The trap works: git itself falls into it.
        touch();
        project.git(&["status"]);
        assert!(marker.exists());
    }
}

#[test]
fn a_submodule_that_only_the_branch_has_is_not_looked_into_either() {
    let (project, mut wire) = repository();
    let (script, marker, _outside) = script();
    filtered(&project, "module");
    project.git(&["switch", "--quiet", "--create", "other"]);
    project.git(&["add", "module"]);
    project.git(&["commit", "--quiet", "--message=module"]);
    project.git(&["switch", "--quiet", "main"]);
    project.git_in("module", &["config", "filter.evil.clean", &script]);
    let file = std::fs::File::options().write(true).open(project.join("module/f")).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    wire.text("git_checkout", json!({"branch": "other"}));
    assert!(!marker.exists());
    project.git(&["status"]);
    assert!(marker.exists());
}

#[test]
fn a_submodule_that_leads_elsewhere_is_refused_by_what_would_follow_it() {
    let (script, marker, _outside) = script();
    let elsewhere = Project::with([]);
    filtered(&elsewhere, "away");
    elsewhere.git_in("away", &["config", "filter.evil.clean", &script]);
    for by_pointer in [true, false] {
        let (project, mut wire) = repository();
        filtered(&project, "module");
        project.git(&["add", "module"]);
        project.git(&["commit", "--quiet", "--message=module"]);
        project.git(&["branch", "other"]);
        let away = elsewhere.join("away");
        let said = if by_pointer {
            std::fs::remove_dir_all(project.join("module/.git")).unwrap();
            project.write("module/.git", &format!("gitdir: {}\n", away.join(".git").display()));
            "outside the allowed roots"
        } else {
            project.git_in("module", &["config", "core.worktree", away.to_str().unwrap()]);
            "core.worktree"
        };
        for (tool, arguments) in writes() {
            project.write("a.txt", "changed\n");
            let text = wire.failure(tool, arguments.clone());
            assert!(arguments["action"] == "pop" || text.contains(said), "{tool} {arguments}: {text}");
            assert!(!marker.exists(), "{tool} {arguments}");
        }
    }
}

#[test]
fn a_missing_object_is_not_fetched() {
    let (project, marker, outside) = armed();
    project.git(&["config", "extensions.partialClone", "origin"]);
    project.git(&["config", "core.repositoryFormatVersion", "1"]);
    project.git(&["config", "remote.origin.promisor", "true"]);
    let url = format!("ext::{}", outside.path().join("evil.sh").display());
    project.git(&["config", "remote.origin.url", &url]);
    project.git(&["config", "protocol.ext.allow", "always"]);
    let _ = std::fs::remove_file(&marker);
    let blob = std::process::Command::new("git")
        .args(["rev-parse", "HEAD~1:a.txt"])
        .current_dir(project.path())
        .output()
        .unwrap();
    let blob = String::from_utf8(blob.stdout).unwrap();
    std::fs::remove_file(project.join(&format!(".git/objects/{}/{}", &blob[..2], blob[2..].trim()))).unwrap();
    let mut wire = connect(&project, &[]);
    wire.failure("git_show", json!({}));
    assert!(!marker.exists(), "{}", std::fs::read_to_string(&marker).unwrap());
}

/// A repository outside of what the server may use, with a secret in it.
fn outside() -> (tempfile::TempDir, Project) {
    let other = Project::with([("secret.txt", "the treasure\n")]);
    init(&other, ".");
    other.git(&["add", "."]);
    other.git(&["commit", "--quiet", "--message=the treasure"]);
    (tempfile::tempdir().unwrap(), other)
}

fn refuses_all(wire: &mut Wire, repository: &str) {
    for (tool, mut arguments) in reads() {
        arguments["repository_path"] = repository.into();
        let text = wire.failure(tool, arguments);
        assert!(text.contains("outside the allowed roots"), "{tool}: {text}");
        assert!(!text.contains("treasure"), "{tool}: {text}");
    }
}

#[test]
fn a_repository_that_leads_outside_is_refused() {
    let (_folder, other) = outside();
    let git_dir = other.join(".git");
    let git_dir = git_dir.to_str().unwrap();
    let project = Project::with([
        ("file/.git", &*format!("gitdir: {git_dir}\n")),
        ("link/x", ""),
        ("common/x", ""),
        ("alternate/x", ""),
        ("nested/x", ""),
        ("objects/x", ""),
        ("head/x", ""),
    ]);
    symlink(git_dir, project.join("link/.git")).unwrap();
    for name in ["common", "alternate", "nested", "objects", "head"] {
        init(&project, name);
    }
    project.write("common/.git/commondir", &format!("{git_dir}\n"));
    let objects = format!("{git_dir}/objects\n");
    project.write("alternate/.git/objects/info/alternates", &objects);
    project.write("nested/.git/objects/info/alternates", "../../../alternate/.git/objects\n");
    std::fs::remove_dir_all(project.join("objects/.git/objects")).unwrap();
    symlink(other.join(".git/objects"), project.join("objects/.git/objects")).unwrap();
    std::fs::remove_file(project.join("head/.git/HEAD")).unwrap();
    symlink(other.join(".git/HEAD"), project.join("head/.git/HEAD")).unwrap();
    symlink(other.path(), project.join("whole")).unwrap();
    let mut wire = connect(&project, &[]);
    for repository in ["file", "link", "common", "alternate", "nested", "objects", "head", "whole"] {
        refuses_all(&mut wire, repository);
    }
    refuses_all(&mut wire, "..");
    refuses_all(&mut wire, other.path().to_str().unwrap());
}

#[test]
fn a_repository_above_the_root_is_told_and_not_used() {
    let (project, _) = repository();
    let mut wire = connect(&project, &["--root", project.join("sub").to_str().unwrap()]);
    let text = wire.failure("git_status", json!({}));
    assert!(text.contains("above the allowed root") && !text.contains("main"), "{text}");
}

#[test]
fn a_work_tree_that_the_configuration_places_elsewhere_is_not_followed() {
    let (_folder, other) = outside();
    let (project, mut wire) = repository();
    project.git(&["config", "core.worktree", other.path().to_str().unwrap()]);
    let status = wire.text("git_status", json!({}));
    assert!(status.contains("clean") && !status.contains("secret.txt"), "{status}");
    wire.failure("git_add", json!({"files": ["secret.txt"]}));
    project.write("a.txt", "changed\n");
    wire.text("git_add", json!({"files": ["a.txt"]}));
    let text = wire.failure("git_commit", json!({"message": "m"}));
    assert!(text.contains("core.worktree"), "{text}");
}

#[test]
fn a_link_among_the_references_is_not_written_through() {
    let (_folder, other) = outside();
    let (project, mut wire) = repository();
    symlink(other.path(), project.join(".git/refs/heads/out")).unwrap();
    let text = wire.failure("git_create_branch", json!({"name": "out/evil"}));
    assert!(text.contains("outside the allowed roots"), "{text}");
    assert!(!other.join("evil").exists());
}

#[test]
fn what_could_be_an_option_is_none() {
    let (project, mut wire) = repository();
    let target = project.join("written");
    let option = format!("--output={}", target.display());
    for (tool, arguments) in [
        ("git_log", json!({"revision": option})),
        ("git_log", json!({"revision": format!("HEAD..{option}")})),
        ("git_diff", json!({"revision": option})),
        ("git_show", json!({"revision": option})),
        ("git_blame", json!({"path": "a.txt", "revision": "--contents=/etc/passwd"})),
        ("git_create_branch", json!({"name": "--force"})),
        ("git_create_branch", json!({"name": "x", "start_point": "--delete"})),
        ("git_create_branch", json!({"name": "@{-1}"})),
        ("git_create_branch", json!({"name": "HEAD"})),
        ("git_create_branch", json!({"name": "a..b"})),
        ("git_checkout", json!({"branch": "-"})),
        ("git_checkout", json!({"branch": "--orphan=x"})),
        ("git_restore", json!({"paths": ["a.txt"], "source": "-p"})),
        ("git_show", json!({"revision": "HEAD\nx"})),
        ("git_show", json!({"revision": ""})),
    ] {
        wire.failure(tool, arguments.clone());
        assert!(!target.exists(), "{tool} {arguments}");
    }
    // Paths are paths, whatever they look like.
    for (tool, arguments) in [
        ("git_log", json!({"paths": [option]})),
        ("git_diff", json!({"paths": [option, "--no-index", "/etc/passwd"]})),
        ("git_add", json!({"files": ["--force", "-A"]})),
        ("git_add", json!({"files": ["../outside"]})),
        ("git_add", json!({"files": ["/etc/passwd"]})),
        ("git_blame", json!({"path": "--contents=/etc/passwd"})),
        ("git_blame", json!({"path": "/etc/passwd"})),
        ("git_restore", json!({"paths": ["--source=HEAD"]})),
    ] {
        let result = wire.call(tool, arguments.clone());
        assert!(!result.to_string().contains("root:"), "{tool} {arguments}: {result}");
        assert!(!target.exists(), "{tool} {arguments}");
    }
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert_eq!(project.git(&["branch", "--format=%(refname:short)"]), "main\n");
}

#[test]
fn variables_of_the_server_do_not_redirect_git() {
    let (_folder, other) = outside();
    let (project, _) = repository();
    let mut command = project.server();
    command
        .env("GIT_DIR", other.join(".git"))
        .env("GIT_WORK_TREE", other.path())
        .env("GIT_INDEX_FILE", other.join(".git/index"))
        .env("GIT_EXTERNAL_DIFF", "false")
        .env("GIT_TRACE", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "diff.external")
        .env("GIT_CONFIG_VALUE_0", "false");
    let mut wire = Wire::connect(command, integration_tests::Era::Modern);
    project.write("a.txt", "changed\n");
    let status = wire.text("git_status", json!({}));
    assert!(status.ends_with("1 changed path\na.txt (modified)"), "{status}");
    assert!(wire.text("git_diff", json!({})).contains("+changed"));
    assert!(wire.text("git_log", json!({})).contains("first"));
}

#[test]
fn protected_files_are_not_changed_by_any_way_back() {
    let (project, _) = repository();
    project.write("coretools.toml", "# strict\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=strict"]);
    project.git(&["switch", "--quiet", "--create", "lax", "HEAD~1"]);
    project.write("coretools.toml", "# lax\n");
    project.write("a.txt", "lax\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=lax"]);
    project.git(&["switch", "--quiet", "main"]);
    let mut wire = connect(&project, &[]);
    let content = || project.read("coretools.toml");
    for (tool, arguments) in [
        ("git_checkout", json!({"branch": "lax"})),
        ("git_checkout", json!({"branch": "lax~1"})),
        ("git_restore", json!({"paths": ["coretools.toml"], "source": "lax"})),
        ("git_restore", json!({"paths": ["."], "source": "lax"})),
        ("git_restore", json!({"paths": ["coretools.toml"]})),
    ] {
        let text = wire.failure(tool, arguments.clone());
        assert!(text.contains("coretools.toml") && text.contains("protected"), "{tool} {arguments}: {text}");
        assert_eq!(content(), "# strict\n", "{tool} {arguments}");
    }
    wire.text("git_restore", json!({"paths": ["a.txt"], "source": "lax"}));
    project.git(&["restore", "a.txt"]);
    project.write("coretools.toml", "# stricter\n");
    let text = wire.failure("git_stash", json!({"action": "push"}));
    assert!(text.contains("protected"), "{text}");
    assert_eq!(content(), "# stricter\n");
    // Staging reads it.
    wire.text("git_add", json!({"files": ["coretools.toml"]}));
    assert_eq!(content(), "# stricter\n");
    wire.text("git_restore", json!({"paths": ["coretools.toml"], "staged": true}));
    assert_eq!(content(), "# stricter\n");
    project.git(&["stash"]);
    project.git(&["rm", "--quiet", "coretools.toml"]);
    project.git(&["commit", "--quiet", "--message=none"]);
    let text = wire.failure("git_stash", json!({"action": "pop"}));
    assert!(text.contains("protected"), "{text}");
    assert!(!project.join("coretools.toml").exists());
}

#[test]
fn a_path_that_is_marked_unchanged_is_protected_all_the_same() {
    let (project, _) = repository();
    project.write("coretools.toml", "# old\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=old"]);
    project.git(&["update-index", "--assume-unchanged", "coretools.toml"]);
    project.write("coretools.toml", "# new\n");
    let mut wire = connect(&project, &[]);
    wire.failure("git_restore", json!({"paths": ["."]}));
    assert_eq!(project.read("coretools.toml"), "# new\n");
}

#[test]
fn a_role_that_reads_only_sees_no_tool_that_writes() {
    let (project, _) = repository();
    let mut wire = connect(&project, &["--role", "readonly"]);
    let tools = wire.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    for name in ["git_status", "git_log", "git_diff", "git_show", "git_blame", "git_list_branches"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for name in ["git_add", "git_commit", "git_create_branch", "git_checkout", "git_restore", "git_stash"] {
        assert!(!names.contains(&name), "{names:?}");
    }
    assert!(wire.text("git_status", json!({})).contains("clean"));
}

#[test]
fn a_role_that_may_use_a_folder_gets_no_repository_that_is_bigger() {
    let (project, _) = repository();
    let policy = tempfile::NamedTempFile::new().unwrap();
    let rules = "version = 1\n[roles.part]\nallow = [\"*\"]\n[[roles.part.require]]\nid = \"sub\"\ntools = [\"*\"]\nread_within = [\"sub\"]\nwrite_within = [\"sub\"]\n";
    std::fs::write(policy.path(), rules).unwrap();
    let path = policy.path().to_str().unwrap();
    let mut wire = connect(&project, &["--policy", path, "--role", "part"]);
    for arguments in [json!({}), json!({"repository_path": "sub"})] {
        let text = wire.failure("git_log", arguments.clone());
        assert!(!text.contains("first"), "{arguments}: {text}");
    }
    assert!(Path::new(path).exists());
}
