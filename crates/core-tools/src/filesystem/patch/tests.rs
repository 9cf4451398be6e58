use proptest::prelude::*;

use super::file_patch::FilePatch;
use super::parse::parse;
use super::*;
use crate::filesystem::testing::{ProjectFixture, chain};

fn apply(project: &ProjectFixture, patch: &str) -> Result<String, String> {
    let applied = apply_patch(&project.workspace, &ApplyPatch::new(patch));
    applied.map(|applied| applied.to_text()).map_err(|error| chain(&error))
}

/// Applies `patch`, and asserts the text of a file afterwards.
#[track_caller]
fn assert_patched(before: &str, patch: &str, after: &str) {
    let project = ProjectFixture::with(&[("f", before)]);
    if let Err(error) = apply(&project, patch) {
        panic!("{error}");
    }
    assert_eq!(project.text("f"), after);
}

/// Returns a patch in the form of Codex that updates the file `f` by these lines.
fn update(lines: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{lines}\n*** End Patch\n")
}

mod codex {
    //! Patches that require what the scenarios of Codex's own tests of its `apply_patch` require. One is not wanted
    //! here: a patch that fails leaves nothing behind.

    use super::*;

    #[test]
    fn files_are_added_changed_and_deleted_by_one_patch() {
        let project = ProjectFixture::with(&[("keep.txt", "a\nb\n"), ("old.txt", "gone\n")]);
        let text = apply(
            &project,
            "*** Begin Patch\n*** Add File: deep/er/new.txt\n+one\n+two\n*** Delete File: old.txt\n\
             *** Update File: keep.txt\n@@\n-b\n+B\n*** End Patch",
        );
        assert_eq!(text.unwrap(), "changed:\nA deep/er/new.txt (+2 -0)\nD old.txt\nM keep.txt (+1 -1)\n");
        assert_eq!(project.text("deep/er/new.txt"), "one\ntwo\n");
        assert_eq!(project.text("keep.txt"), "a\nB\n");
        assert_eq!(project.names(""), ["deep", "keep.txt"]);
    }

    #[test]
    fn hunks_of_one_file_follow_each_other() {
        assert_patched("1\n2\n3\n4\n", &update("@@\n-2\n+two\n@@\n-4\n+four"), "1\ntwo\n3\nfour\n");
    }

    #[test]
    fn a_file_moves_to_a_new_folder_and_over_another() {
        for before in [None, Some("in the way\n")] {
            let project = ProjectFixture::with(&[("old/a.txt", "x\nold\n"), ("old/b.txt", "b\n")]);
            if let Some(before) = before {
                project.put("new/deep/c.txt", before);
            }
            let patch = "*** Begin Patch\n*** Update File: old/a.txt\n*** Move to: new/deep/c.txt\n@@\n x\n-old\n+new\n\
                         *** End Patch";
            let text = apply(&project, patch).unwrap();
            assert!(text.starts_with("changed:\nR old/a.txt -> new/deep/c.txt (+1 -1)\n"), "{text}");
            assert_eq!(text.contains("existed"), before.is_some());
            assert_eq!(project.text("new/deep/c.txt"), "x\nnew\n");
            assert_eq!(project.names("old"), ["b.txt"]);
        }
    }

    #[test]
    fn what_is_no_patch_is_refused_with_its_line() {
        for (patch, message) in [
            ("*** Begin Patch\n*** End Patch", "it changes no file"),
            (update("").as_str(), "`patch`, line 2: the part about `f` has no lines that change it"),
            (
                "*** Begin Patch\n*** Rename File: f\n*** End Patch",
                "line 2: `*** Rename File: f` is no header",
            ),
            ("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b", "`*** End Patch` is missing"),
            (update("@@\nno sign").as_str(), "line 4: `no sign` begins with none of"),
            (update("@@").as_str(), "line 3: the hunk has no lines"),
            ("*** Begin Patch\n*** Add File:  \n+x\n*** End Patch", "line 2: the header names no file"),
            (
                format!("*** Begin Patch\n{}*** End Patch", "*** Delete File: f\n".repeat(201)).as_str(),
                "201 files; at most 200",
            ),
            ("just text", "it is no patch"),
            ("", "it is no patch"),
        ] {
            let project = ProjectFixture::with(&[("f", "a\n")]);
            let error = apply(&project, patch).unwrap_err();
            assert!(error.contains(message), "{patch:?}: {error}");
            assert_eq!(project.text("f"), "a\n");
        }
    }

    #[test]
    fn files_that_are_missing_and_folders_are_errors() {
        let project = ProjectFixture::with(&[("folder/main.rs", "x\n")]);
        for (part, message) in [
            (
                "*** Update File: folder/mian.rs\n@@\n-x\n+y",
                "`folder/mian.rs` does not exist; did you mean `folder/main.rs`?",
            ),
            ("*** Delete File: gone", "`gone` does not exist"),
            ("*** Delete File: folder", "`folder` is a directory, not a file"),
            ("*** Update File: folder\n@@\n-x\n+y", "`folder` is a directory"),
            ("*** Add File: folder/main.rs/x\n+y", "not a folder"),
            ("*** Add File: ../x\n+y", "leads outside"),
        ] {
            let error = apply(&project, &format!("*** Begin Patch\n{part}\n*** End Patch")).unwrap_err();
            assert!(error.starts_with("nothing was changed: ") && error.contains(message), "{error}");
        }
        assert_eq!(project.names("folder"), ["main.rs"]);
    }

    #[test]
    fn nothing_is_left_of_a_patch_that_fails_in_its_second_file() {
        let project = ProjectFixture::with(&[("f", "a\n")]);
        let patch =
            "*** Begin Patch\n*** Add File: new/deep.txt\n+x\n*** Update File: f\n@@\n-b\n+c\n*** End Patch";
        apply(&project, patch).unwrap_err();
        assert_eq!(project.names(""), ["f"]);
    }

    #[test]
    fn an_added_file_replaces_one_and_says_so() {
        let project = ProjectFixture::with(&[("f", "old\n")]);
        let text = apply(&project, "*** Begin Patch\n*** Add File: f\n+new\n*** End Patch").unwrap();
        assert_eq!(text, "changed:\nM f (+1 -1)\n[f existed, and was replaced]\n");
        assert_eq!(project.text("f"), "new\n");
    }

    #[test]
    fn a_line_that_is_removed_and_added_again_is_no_change() {
        let project = ProjectFixture::with(&[("f", "a\nb\nc\n"), ("g", "x\n")]);
        let patch = "*** Begin Patch\n*** Update File: f\n@@\n-a\n-b\n-c\n+a\n+B\n+c\n*** Update File: g\n@@\n-x\n+x\n\
                     *** End Patch";
        assert_eq!(apply(&project, patch).unwrap(), "changed:\nM f (+1 -1)\nM g\n");
        assert_eq!(project.text("f"), "a\nB\nc\n");
    }

    #[test]
    fn lines_that_only_come_stand_at_the_end_or_after_their_anchor() {
        assert_patched("1\n2\n", &update("@@\n+3\n+4"), "1\n2\n3\n4\n");
        assert_patched("a:\nb:\n", &update("@@ a:\n+  x"), "a:\n  x\nb:\n");
        assert_patched("", &update("@@\n+x"), "x\n");
    }

    #[test]
    fn a_last_line_without_a_line_end_gets_one_if_it_changes() {
        assert_patched("a\nend", &update("@@\n-end\n+the\n+end"), "a\nthe\nend\n");
        assert_patched("a\nend", &update("@@\n-a\n+b"), "b\nend");
    }

    #[test]
    fn markers_may_have_blanks_around_them_and_a_wrapping() {
        let plain = "*** Update File: f\n@@\n-one\n+two\n";
        for patch in [
            format!(" *** Begin Patch\n{plain}*** End Patch \n"),
            format!("*** Begin Patch \n  {plain} *** End Patch\n"),
            format!("*** Begin Patch\r\n{}*** End Patch\r\n", plain.replace('\n', "\r\n")),
            format!("<<'EOF'\n*** Begin Patch\n{plain}*** End Patch\nEOF\n"),
            format!("```diff\n*** Begin Patch\n{plain}\n*** End Patch\n```"),
            format!("apply_patch <<EOF\n*** Begin Patch\n{}*** End Patch\nEOF", plain.replace("@@\n", "")),
        ] {
            assert_patched("one\n", &patch, "two\n");
        }
    }

    #[test]
    fn characters_of_several_bytes_and_typographic_ones_match() {
        assert_patched(
            "x\nnaïve café\n",
            &update("@@\n x\n-naïve café\n+naïve café ✅"),
            "x\nnaïve café ✅\n",
        );
        assert_patched("a — “b”\u{a0}c\n", &update("@@\n-a - \"b\" c\n+d"), "d\n");
    }

    #[test]
    fn lines_are_only_removed_and_the_end_of_the_file_is_named() {
        assert_patched("1\n2\n3\n", &update("@@\n 1\n-2\n 3"), "1\n3\n");
        assert_patched("a\nb\na\nb\n", &update("@@\n a\n-b\n+last\n*** End of File"), "a\nb\na\nlast\n");
    }

    #[test]
    fn anchors_choose_the_place_one_after_the_other() {
        let before = "class A:\n  def f():\n    pass\nclass B:\n  def f():\n    pass\n";
        let after = "class A:\n  def f():\n    pass\nclass B:\n  def f():\n    return 1\n";
        for anchors in [
            "@@ class B:\n@@   def f():",
            "@@ class B",
            "@@ class B @@",
            "@@ -5,2 +5,2 @@ class B:\n   def f():",
        ] {
            assert_patched(before, &update(&format!("{anchors}\n-    pass\n+    return 1")), after);
        }
    }

    #[test]
    fn blanks_at_the_ends_do_not_count_and_what_stays_is_as_it_was() {
        assert_patched("a  \n\tb\nc\n", &update("@@\n a\n-b\n+B\n c"), "a  \nB\nc\n");
        assert_patched("a\n\nb\n", &update("@@\n a\n\n-b\n+c\n"), "a\n\nc\n");
    }

    #[test]
    fn a_file_may_be_moved_alone_and_changed_twice() {
        let project = ProjectFixture::with(&[("f", "1\n2\n")]);
        apply(
            &project,
            "*** Begin Patch\n*** Update File: f\n@@\n-1\n+one\n*** Update File: ./f\n@@\n one\n-2\n+two\n\
             *** Update File: f\n*** Move to: g\n*** End Patch",
        )
        .unwrap();
        assert_eq!(project.text("g"), "one\ntwo\n");
        assert_eq!(project.names(""), ["g"]);
    }
}

mod unified {
    use super::*;

    const BEFORE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

    #[test]
    fn a_diff_of_git_is_applied() {
        let project =
            ProjectFixture::with(&[("src/a.rs", BEFORE), ("old.rs", "x\ny\n"), ("gone.rs", "bye\n")]);
        let text = apply(
            &project,
            "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
             @@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -5,3 +5,4 @@ fn x() {\n five\n six\n+six and a half\n seven\n\
             diff --git a/old.rs b/new.rs\nsimilarity index 50%\nrename from old.rs\nrename to new.rs\n\
             --- a/old.rs\n+++ b/new.rs\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n\
             diff --git a/gone.rs b/gone.rs\ndeleted file mode 100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n\
             diff --git a/made.rs b/made.rs\nnew file mode 100644\n--- /dev/null\n+++ b/made.rs\n@@ -0,0 +1 @@\n+hi\n",
        );
        assert_eq!(
            text.unwrap(),
            "changed:\nM src/a.rs (+2 -1)\nR old.rs -> new.rs (+1 -1)\nD gone.rs (+0 -1)\nA made.rs (+1 -0)\n"
        );
        assert_eq!(project.text("src/a.rs"), "one\n2\nthree\nfour\nfive\nsix\nsix and a half\nseven\n");
        assert_eq!((project.text("new.rs"), project.text("made.rs")), ("x\nz\n".into(), "hi\n".into()));
        assert_eq!(project.names(""), ["made.rs", "new.rs", "src"]);
    }

    #[test]
    fn a_rename_alone_and_an_empty_file_have_no_hunks() {
        let project = ProjectFixture::with(&[("a b", "x\n")]);
        apply(
            &project,
            "diff --git a/a b b/c d\nsimilarity index 100%\nrename from a b\nrename to c d\n\
             diff --git a/empty b/empty\nnew file mode 100644\nindex 0..e69de29\n",
        )
        .unwrap();
        assert_eq!((project.text("c d"), project.text("empty")), ("x\n".into(), String::new()));
        assert_eq!(project.names(""), ["c d", "empty"]);
    }

    #[test]
    fn wrong_line_numbers_and_counts_do_no_harm_where_the_lines_stand_once() {
        let after = BEFORE.replace("five", "5");
        for header in ["@@ -1,9 +1,1 @@", "@@ -500,3 +500,3 @@", "@@ ... @@", "@@", "@@ -5 +5 @@"] {
            let patch = format!("--- a/f\n+++ b/f\n{header}\n four\n-five\n+5\n six\n");
            assert_patched(BEFORE, &patch, &after);
        }
        // Without prefixes, with times, and with the copy that was compared.
        for (old, new) in [
            ("f", "f"),
            ("f\t2026-01-01 00:00:00", "f\t2026-01-02 00:00:00"),
            ("f.orig", "f"),
            ("\"a/\\146\"", "b/f"),
        ] {
            assert_patched(BEFORE, &format!("--- {old}\n+++ {new}\n@@ -5 +5 @@\n-five\n+5\n"), &after);
        }
    }

    #[test]
    fn lines_that_stand_several_times_need_their_number() {
        let before = "a\nx\na\nx\na\n";
        assert_patched(before, "--- a/f\n+++ b/f\n@@ -3,2 +3,2 @@\n-a\n+b\n x\n", "a\nx\nb\nx\na\n");
        let project = ProjectFixture::with(&[("f", before)]);
        let error = apply(&project, "--- a/f\n+++ b/f\n@@ -9,2 +9,2 @@\n-a\n+b\n x\n").unwrap_err();
        assert_eq!(
            error,
            "nothing was changed: `f`, hunk 1 of 1: its lines stand 2 times, at lines 1, 3; add lines around it, or its \
             line number"
        );
    }

    #[test]
    fn lines_that_look_like_headers_are_lines() {
        let patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n--- b\n+++ d\n ++ c\n";
        assert_patched("a\n-- b\n++ c\n", patch, "a\n++ d\n++ c\n");
        let mail = "Subject: x\n---\n f | 1 +\n\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n-- \n2.47.3\n\n";
        assert_patched("a\n", mail, "b\n");
    }

    #[test]
    fn the_end_of_the_last_line_is_as_the_diff_says() {
        let no_end = "\\ No newline at end of file\n";
        assert_patched("a\nb\n", &format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n{no_end}"), "a\nc");
        assert_patched("a\nb", &format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n{no_end}+b\n"), "a\nb\n");
        assert_patched("a\nb", &format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n{no_end}"), "c\nb");
    }

    #[test]
    fn what_git_refuses_is_refused() {
        let project = ProjectFixture::with(&[("f", "a\nb\n")]);
        for (patch, message) in [
            ("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", "`f` already exists"),
            ("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "does not remove all its lines"),
            ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "binary changes are not applied"),
            ("diff --git a/f b/g\ncopy from f\ncopy to g\n", "copies are not applied"),
            (
                "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
                "a change of permissions alone is not applied",
            ),
            (
                "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\nlost its blank\n",
                "line 6: `lost its blank` begins with none of",
            ),
        ] {
            let error = apply(&project, patch).unwrap_err();
            assert!(error.contains(message), "{patch}: {error}");
        }
        assert_eq!(project.text("f"), "a\nb\n");
    }
}

#[test]
fn a_hunk_that_does_not_fit_is_named_with_the_nearest_place_and_how_it_differs() {
    let before = "fn main() {\n    let total = sum(&items);\n    print(total);\n}\n";
    let project = ProjectFixture::with(&[("f", before), ("g", "nothing alike\n")]);
    let error = |patch: &str| apply(&project, patch).unwrap_err();
    assert_eq!(
        error(&update(
            "@@\n fn main() {\n-    let total = sum(items);\n+    let total = 0;\n     print(total);"
        )),
        "nothing was changed: `f`, hunk 1 of 1: its lines do not stand in the file; the nearest place is line 1, where 1 \
         of 3 differ:\n2 in the file:     let total = sum(&items);\n  in the patch:     let total = sum(items);"
    );
    // All that does not fit is reported at once.
    let several = error(
        "*** Begin Patch\n*** Update File: f\n@@\n-    print( total );\n+    x\n@@ fn mian() {\n+y\n\
         *** Update File: g\n@@\n-completely other\n+z\n*** End Patch",
    );
    assert!(several.starts_with("nothing was changed; 3 parts of the patch do not fit:\n"), "{several}");
    assert!(several.contains("`f`, hunk 1 of 2: ") && several.contains("(only blanks differ)"), "{several}");
    assert!(
        several.contains("hunk 2 of 2: no line is `fn mian() {`") && several.contains("\n1: fn main() {"),
        "{several}"
    );
    assert!(
        several.contains("`g`, hunk 1 of 1: ") && several.contains("nor anything like them"),
        "{several}"
    );
    // A patch that was applied already.
    apply(&project, &update("@@\n-    print(total);\n+    print(total + 1);")).unwrap();
    let again = error(&update("@@\n-    print(total);\n+    print(total + 1);"));
    assert!(again.contains("those that it would make stand at line 3 already"), "{again}");
    let both = error(&update("@@ -1,1 +1,1 @@\n-fn main() {\n+a\n@@ -1,1 +1,1 @@\n-fn main() {\n+b"));
    assert!(both.contains("hunk 2 of 2: it changes lines that hunk 1 changes too"), "{both}");
}

#[test]
fn a_place_that_is_not_the_only_one_is_said() {
    let project = ProjectFixture::with(&[("f", "x\ny\nx\n")]);
    let text = apply(&project, &update("@@\n-x\n+z")).unwrap();
    assert!(
        text.contains("[f: hunk 1 fits at lines 1, 3, and was made at line 1; `@@ LINE` before it"),
        "{text}"
    );
}

#[test]
fn a_dry_run_shows_the_diffs_and_writes_nothing() {
    let project = ProjectFixture::with(&[("f", "a\n"), ("g", "b\n")]);
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+A\n*** Add File: h/i\n+x\n*** Delete File: g\n*** End Patch";
    let input = ApplyPatch { dry_run: true, ..ApplyPatch::new(patch) };
    let text = apply_patch(&project.workspace, &input).unwrap().to_text();
    assert!(text.starts_with("would change:\nM f (+1 -1)\nA h/i (+1 -0)\nD g\n"), "{text}");
    assert!(
        text.contains("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n") && text.contains("+++ b/h/i\n"),
        "{text}"
    );
    assert_eq!((project.text("f"), project.names("")), ("a\n".into(), vec!["f".to_owned(), "g".to_owned()]));
}

#[test]
fn line_ends_byte_order_marks_and_foreign_bytes_stay() {
    assert_patched("a\r\nb\r\nc\r\n", &update("@@\n a\n-b\n+x\n+y\n c"), "a\r\nx\r\ny\r\nc\r\n");
    assert_patched("\u{feff}a\nb\n", &update("@@\n-a\n+x"), "\u{feff}x\nb\n");
    let project = ProjectFixture::with(&[("f", b"caf\xe9\none\n")]);
    apply(&project, &update("@@\n-one\n+two")).unwrap();
    assert_eq!(project.get("f"), b"caf\xe9\ntwo\n");
    project.put("f", "a\0b\n");
    assert!(apply(&project, &update("@@\n-a\n+b")).unwrap_err().contains("is not text but a binary file"));
}

#[test]
fn masks_are_neither_matched_nor_written() {
    let project = ProjectFixture::with(&[("f", "key = AKIA123\nname = x\n")]);
    let error = apply(&project, &update("@@\n key = [redacted:aws]\n-name = x\n+name = y")).unwrap_err();
    assert!(error.contains("a mask shown in place of a secret; leave that line out"), "{error}");
    let error = apply(&project, &update("@@\n-name = x\n+key = [redacted:aws]")).unwrap_err();
    assert!(error.contains("the text contains [redacted:aws]"), "{error}");
    let error = apply(&project, "*** Begin Patch\n*** Add File: f\n+key = [redacted:aws]\n*** End Patch")
        .unwrap_err();
    assert!(error.contains("the text contains [redacted:aws]"), "{error}");
    assert_eq!(project.text("f"), "key = AKIA123\nname = x\n");
}

#[cfg(unix)]
mod on_unix {
    #![allow(
        clippy::disallowed_methods,
        reason = "the tests set up and look at the file system from outside"
    )]

    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn permissions_stay_also_when_a_file_moves() {
        let project = ProjectFixture::with(&[("run.sh", "a\n")]);
        fs::set_permissions(project.at("run.sh"), PermissionsExt::from_mode(0o751)).unwrap();
        let mode = |path| fs::metadata(project.at(path)).unwrap().permissions().mode() & 0o777;
        apply(&project, "*** Begin Patch\n*** Update File: run.sh\n@@\n-a\n+b\n*** End Patch").unwrap();
        assert_eq!(mode("run.sh"), 0o751);
        apply(&project, "*** Begin Patch\n*** Update File: run.sh\n*** Move to: bin/run\n*** End Patch")
            .unwrap();
        assert_eq!((mode("bin/run"), project.names("")), (0o751, vec!["bin".to_owned()]));
    }

    #[test]
    fn a_link_is_written_through_and_removed_itself() {
        let project = ProjectFixture::with(&[("real", "a\n")]);
        symlink("real", project.at("link")).unwrap();
        apply(&project, "*** Begin Patch\n*** Update File: link\n@@\n-a\n+b\n*** End Patch").unwrap();
        assert!(project.at("link").is_symlink());
        apply(&project, "*** Begin Patch\n*** Update File: link\n*** Move to: copy\n*** End Patch").unwrap();
        assert_eq!((project.text("real"), project.text("copy")), ("b\n".into(), "b\n".into()));
        assert_eq!(project.names(""), ["copy", "real"]);
    }

    #[test]
    fn a_step_that_fails_undoes_those_before_it() {
        let project = ProjectFixture::with(&[("a", "1\n"), ("b", "2\n"), ("locked/c", "3\n")]);
        if rustix::process::geteuid().is_root() {
            // Nothing is closed to root; a folder in the way is.
            fs::create_dir(project.at("locked/.coretools")).unwrap();
        }
        fs::set_permissions(project.at("locked"), PermissionsExt::from_mode(0o555)).unwrap();
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n*** Delete File: b\n*** Delete File: locked/c\n\
                     *** Add File: new/d\n+x\n*** End Patch";
        let result = apply(&project, patch);
        fs::set_permissions(project.at("locked"), PermissionsExt::from_mode(0o755)).unwrap();
        if result.is_err() {
            assert_eq!((project.text("a"), project.text("b")), ("1\n".into(), "2\n".into()));
            assert_eq!(project.names(""), ["a", "b", "locked"]);
        } else {
            assert!(rustix::process::geteuid().is_root());
        }
    }

    #[test]
    fn what_git_keeps_is_not_patched_and_nothing_else_is_either() {
        let project = ProjectFixture::with(&[("f", "a\n"), (".git/config", "[core]\n")]);
        for part in [
            "*** Add File: .git/hooks/pre-commit\n+#!/bin/sh",
            "*** Update File: .git/config\n@@\n [core]\n+fsmonitor = x",
            "*** Delete File: .git/config",
            "*** Update File: f\n*** Move to: .git/hooks/post-merge",
            "*** Add File: sub/.git\n+gitdir: ../evil",
        ] {
            let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n{part}\n*** End Patch");
            let error = apply(&project, &patch).unwrap_err();
            assert!(error.contains("belongs to git"), "{part}: {error}");
            assert_eq!((project.text("f"), project.text(".git/config")), ("a\n".into(), "[core]\n".into()));
        }
        assert_eq!(project.names(".git"), ["config"]);
        assert_eq!(project.names(""), [".git", "f"]);
    }
}

#[test]
fn patches_of_the_same_files_at_once_lose_none() {
    const EACH: usize = 10;
    let lines: String = (0..4 * EACH).map(|line| format!("<{line}>\n")).collect();
    let project = ProjectFixture::with(&[("f", &lines), ("g", &lines)]);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let project = &project;
            scope.spawn(move || {
                for line in worker * EACH..(worker + 1) * EACH {
                    // In both orders.
                    let (one, other) = if line % 2 == 0 { ("f", "g") } else { ("g", "f") };
                    let part = |file| format!("*** Update File: {file}\n@@\n-<{line}>\n+done {line};\n");
                    let patch = format!("*** Begin Patch\n{}{}*** End Patch", part(one), part(other));
                    apply(project, &patch).unwrap();
                }
            });
        }
    });
    let expected: String = (0..4 * EACH).map(|line| format!("done {line};\n")).collect();
    assert_eq!((project.text("f"), project.text("g")), (expected.clone(), expected));
}

/// Edits of lines: for each line of a file, what becomes of it, and what comes after it.
fn edited(lines: &[String], edits: &[(u8, u8)]) -> Vec<(char, String)> {
    let mut marked = Vec::new();
    for (line, (kind, added)) in lines.iter().zip(edits.iter().cycle()) {
        marked.push((if *kind < 2 { '-' } else { ' ' }, line.clone()));
        if *kind % 3 == 1 {
            marked.push(('+', format!("new {added}")));
        }
    }
    marked
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_parser_never_panics(text in "(\\*\\*\\* (Begin Patch|End Patch|Update File: f|Add File: |Delete File: g|Move to: h|End of File)\n|@@( -[0-9]{0,30},?[0-9]* \\+1)?[^\n]{0,4}\n|(--- |\\+\\+\\+ |diff --git |rename (from|to) )(a/|b/|\"\\\\[0-9n]|/dev/null)?[^\n]{0,4}\n|[-+ \\\\]?[ab\r]{0,3}\n){0,24}") {
        if let Ok(files) = parse(&text) {
            prop_assert!(!files.is_empty());
            let project = ProjectFixture::with(&[("f", "a\nb\n")]);
            let _ = apply(&project, &text);
        }
    }

    #[test]
    fn any_text_is_a_patch_or_an_error(text in ".{0,200}") {
        let _ = parse(&text);
        let _ = parse(&format!("*** Begin Patch\n{text}\n*** End Patch"));
        let _ = parse(&format!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n{text}"));
    }

    #[test]
    fn a_patch_made_of_edits_gives_the_edited_file(
        texts in proptest::collection::vec("[a-d]{0,2}", 1..30),
        edits in proptest::collection::vec((0..6_u8, 0..9_u8), 1..30),
        context in 0..4_usize,
    ) {
        // Unique lines: otherwise a hunk with little context has several places.
        let lines: Vec<String> = texts.iter().enumerate().map(|(index, text)| format!("{text}{index}")).collect();
        let marked = edited(&lines, &edits);
        let before: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let kept = marked.iter().filter(|(sign, _)| *sign != '-');
        let after: String = kept.flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
        prop_assume!(before != after);
        let whole: String = marked.iter().map(|(sign, line)| format!("{sign}{line}\n")).collect();
        // The whole file as one hunk, and the hunks that a differ makes, with line numbers that may be wrong.
        let diff = similar::TextDiff::from_lines(&before, &after);
        let unified = diff.unified_diff().context_radius(context + 1).header("a/f", "b/f").to_string();
        let hunks: String = unified.lines().skip(2).map(|line| {
            if line.starts_with("@@") { "@@\n".to_owned() } else { format!("{line}\n") }
        }).collect();
        for patch in [update(&format!("@@\n{whole}")), unified.clone(), unified.replace("@@ -", "@@ -9"), update(&hunks)] {
            let project = ProjectFixture::with(&[("f", &before)]);
            let applied = apply(&project, &patch);
            prop_assert!(applied.is_ok(), "{:?}\n{}", applied, patch);
            prop_assert_eq!(project.text("f"), after.clone(), "{}", patch);
        }
    }
}

#[test]
fn a_part_knows_its_path() {
    let files = parse("*** Begin Patch\n*** Add File: a b/c.txt\n+x\n\n+y\n*** End Patch").unwrap();
    let content = "x\n\ny\n".to_owned();
    assert_eq!(files, [FilePatch::Add { path: "a b/c.txt".into(), content, overwrite: true }]);
}
