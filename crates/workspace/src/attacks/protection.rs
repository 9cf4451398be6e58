//! Files and names that no operation may change.

use std::fs;

use super::{RootsFixture, both, read};
use crate::{Error, FileReplaceCondition, Workspace};

#[test]
fn a_protected_file_withstands_every_way_to_change_it() {
    let world = RootsFixture::new();
    fs::create_dir_all(world.at("root/conf/deep")).unwrap();
    fs::write(world.at("root/conf/deep/policy.toml"), "mine").unwrap();
    fs::write(world.at("root/other.txt"), "other").unwrap();
    world.link("conf/deep/policy.toml", "root/by_link");
    world.link("conf", "root/conf_link");
    fs::hard_link(world.at("root/conf/deep/policy.toml"), world.at("root/by_hard_link")).unwrap();
    let protected = [world.at("root/conf/deep/policy.toml"), world.at("root/conf_link/later.toml")];
    let workspace = Workspace::new([world.at("root")]).unwrap().protect(protected);
    for workspace in both(workspace) {
        let at = |path: &str| workspace.locate(path).unwrap();
        let is_refused = |result: Result<(), Error>| matches!(result, Err(Error::Protected { .. }));
        for path in [
            "conf/deep/policy.toml",
            "by_link",
            "by_hard_link",
            "conf_link/deep/policy.toml",
            "conf/later.toml",
            "conf/deep/../later.toml",
            "conf/deep/POLICY.toml",
            "conf/deep/../../conf/deep/policy.toml",
        ] {
            assert!(is_refused(at(path).write(b"x")), "write {path}");
            assert!(is_refused(at(path).target().unwrap().append(b"x")), "append {path}");
            // Moving onto a link that is not itself protected replaces the link only.
            assert!(
                path == "by_link" || is_refused(at("other.txt").rename_to(&at(path), true)),
                "move onto {path}"
            );
        }
        for path in ["conf/deep/policy.toml", "conf", "conf/deep", "conf_link", "by_hard_link"] {
            assert!(is_refused(at(path).rename_to(&at("elsewhere"), false)), "move {path} away");
        }
        for path in ["conf/deep/policy.toml", "conf_link", "by_hard_link"] {
            assert!(is_refused(at(path).remove_file()), "remove {path}");
        }
        assert!(is_refused(at("conf/later.toml").create_folder_all().map(|_| ())));
        assert!(is_refused(at("conf/later.toml/x").write(b"x")));
        // What only lies beside is free, and reading always is.
        at("conf/deep/free.toml").write(b"x").unwrap();
        assert_eq!(read(&at("by_link")).unwrap(), "mine");
    }
    assert_eq!(fs::read_to_string(world.at("root/conf/deep/policy.toml")).unwrap(), "mine");
}

#[test]
fn a_protected_name_withstands_every_way_to_make_change_or_remove_it_in_any_folder() {
    const NAME: &str = "coretools.toml";
    let world = RootsFixture::new();
    fs::write(world.at("root/coretools.toml"), "mine").unwrap();
    fs::write(world.at("root/other.txt"), "other").unwrap();
    fs::create_dir_all(world.at("root/deep/er")).unwrap();
    world.link("coretools.toml", "root/by_link");
    world.link("src/coretools.toml", "root/by_dangling_link");
    fs::hard_link(world.at("root/coretools.toml"), world.at("root/by_hard_link")).unwrap();
    let workspace = Workspace::new([world.at("root"), world.at("other")]).unwrap().protect_name(NAME);
    let narrow = workspace.narrowed(["deep"]).unwrap();
    assert!(matches!(narrow.locate("er/coretools.toml").unwrap().write(b"x"), Err(Error::Protected { .. })));
    for workspace in both(workspace) {
        let at = |path: &str| workspace.locate(path).unwrap();
        let is_refused = |result: Result<(), Error>| matches!(result, Err(Error::Protected { .. }));
        for path in [
            "coretools.toml",
            "CoreTools.TOML",
            "coretoolſ.toml",
            "src/coretools.toml",
            "src/../deep/er/coretools.toml",
            "other:coretools.toml",
            "by_link",
            "by_dangling_link",
            "by_hard_link",
        ] {
            assert!(is_refused(at(path).write(b"x")), "write {path}");
            assert!(is_refused(at(path).target().unwrap().append(b"x")), "append {path}");
            let expect = at(path).target().unwrap().replace(b"x", FileReplaceCondition::Missing);
            assert!(is_refused(expect) || fs::metadata(at(path).to_absolute()).is_ok(), "create {path}");
            if !path.starts_with("by_") {
                assert!(is_refused(at("other.txt").rename_to(&at(path), true)), "move onto {path}");
                assert!(is_refused(at("other.txt").rename_to(&at(path), false)), "move to {path}");
                assert!(is_refused(at("deep").rename_to(&at(path), false)), "move a folder to {path}");
                assert!(is_refused(at(path).create_folder_all().map(|_| ())) || path == NAME, "{path}/");
            }
        }
        assert!(is_refused(at("new/coretools.toml/x").write(b"x")));
        for path in ["coretools.toml", "by_hard_link"] {
            assert!(is_refused(at(path).rename_to(&at("elsewhere"), false)), "move {path} away");
            assert!(is_refused(at(path).remove_file()), "remove {path}");
        }
        // What only resembles it is free, and reading always is.
        for path in ["coretools.toml.example", "my-coretools.toml", "src/coretools", "toml"] {
            at(path).write(b"x").unwrap();
            at(path).remove_file().unwrap();
        }
        assert_eq!(read(&at("by_link")).unwrap(), "mine");
    }
    assert_eq!(fs::read_to_string(world.at("root/coretools.toml")).unwrap(), "mine");
    assert!(!world.at("root/src/coretools.toml").exists() && !world.at("other/coretools.toml").exists());
}

#[test]
fn a_protected_folder_withstands_every_way_to_put_change_or_remove_something_in_it() {
    let world = RootsFixture::new();
    fs::create_dir_all(world.at("root/.there/plugins/deep")).unwrap();
    fs::create_dir_all(world.at("root/tmp/plugins")).unwrap();
    fs::write(world.at("root/.there/plugins/deep/a.js"), "mine").unwrap();
    fs::write(world.at("root/tmp/plugins/evil.js"), "evil").unwrap();
    fs::write(world.at("root/tmp/settings.json"), "evil").unwrap();
    fs::write(world.at("root/other.txt"), "other").unwrap();
    world.link(".there", "root/by_link");
    let workspace = Workspace::new([world.at("root")])
        .unwrap()
        .protect_folders([world.at("root/.there/plugins"), world.at("root/.later/plugins")])
        .protect([world.at("root/.soon/settings.json")]);
    for workspace in both(workspace) {
        let at = |path: &str| workspace.locate(path).unwrap();
        let is_refused = |result: Result<(), Error>| matches!(result, Err(Error::Protected { .. }));
        for path in [
            ".there/plugins/new.js",
            ".there/plugins/deep/a.js",
            ".there/PLUGINS/new.js",
            ".there/plugins/new/new.js",
            "by_link/plugins/new.js",
            "by_link/plugins/new/new.js",
            ".later/plugins/new.js",
            ".later/plugins/new/new.js",
            ".Later/Plugins/new.js",
            ".there/../.later/plugins/new.js",
        ] {
            assert!(is_refused(at(path).write(b"x")), "write {path}");
            assert!(is_refused(at("other.txt").rename_to(&at(path), true)), "move to {path}");
            assert!(is_refused(at("tmp").rename_to(&at(path), false)), "move a folder to {path}");
            let checked = at(path).check_changeable().and_then(|()| at(path).check_creatable());
            assert!(is_refused(checked), "check {path}");
        }
        assert!(is_refused(at(".there/plugins/deep/a.js").remove_file()));
        assert!(is_refused(at(".there/plugins/deep").rename_to(&at("elsewhere"), false)));
        assert!(is_refused(at(".there").rename_to(&at("elsewhere"), false)));
        assert!(is_refused(at(".later/plugins").create_folder_all().map(|_| ())));
        // A folder that brings with it what nothing may write there.
        for path in [".later", ".later/plugins", ".soon"] {
            assert!(is_refused(at("tmp").rename_to(&at(path), false)), "move a folder to {path}");
        }
        // What only lies beside is free, and reading always is.
        at(".there/notes.md").write(b"x").unwrap();
        at(".later/notes.md").write(b"x").unwrap();
        at("plugins/free.js").write(b"x").unwrap();
        assert_eq!(read(&at("by_link/plugins/deep/a.js")).unwrap(), "mine");
        fs::remove_dir_all(world.at("root/.later")).unwrap();
    }
    assert_eq!(fs::read_dir(world.at("root/.there/plugins")).unwrap().count(), 1);
}
