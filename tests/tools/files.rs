//! Reading and changing files.

use crate::serve;
use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

#[test]
fn what_was_written_is_read_back_byte_by_byte() {
    let (project, mut wire) = serve([]);
    for content in ["", "no line end", "ä € 🦀\n", "a\r\nb\r\n", "tabs\tand\u{7f}\n", "\n\n\n"] {
        wire.text("write_file", json!({"path": "deep/down/a.txt", "content": content}));
        assert_eq!(project.read("deep/down/a.txt"), content);
        let expected = if content.is_empty() { "[no lines, 0 bytes]\n" } else { content };
        assert_eq!(wire.text("read_file", json!({"path": "deep/down/a.txt"})), expected);
    }
}

#[test]
fn a_byte_order_mark_is_told_apart_from_the_text_and_survives_an_edit() {
    let (project, mut wire) = serve([("a.txt", "\u{feff}one\n")]);
    let text = wire.text("read_file", json!({"path": "a.txt"}));
    assert!(text.starts_with("one\n") && text.contains("byte order mark"), "{text}");
    wire.text("edit_file", json!({"path": "a.txt", "edits": [{"old_string": "one", "new_string": "two"}]}));
    assert_eq!(project.read("a.txt"), "\u{feff}two\n");
}

#[test]
fn a_file_is_read_by_lines_and_the_answer_says_how_to_read_on() {
    let lines: String = (1..=5000).map(|number| format!("line {number}\n")).collect();
    let (_project, mut wire) = serve([("a.txt", lines.as_str())]);
    let whole = wire.text("read_file", json!({"path": "a.txt"}));
    assert!(whole.starts_with("line 1\n") && whole.contains("line 2000\n") && !whole.contains("line 2001\n"));
    assert!(whole.contains("of 5000") && whole.contains("offset=2001"), "{}", &whole[whole.len() - 200..]);
    let part = wire.text("read_file", json!({"path": "a.txt", "offset": 4999, "limit": 10}));
    assert!(part.starts_with("line 4999\nline 5000\n"), "{part}");
    assert!(wire.text("read_file", json!({"path": "a.txt", "head": 1})).starts_with("line 1\n"));
    assert!(wire.text("read_file", json!({"path": "a.txt", "tail": 1})).contains("line 5000\n"));
}

#[test]
fn following_the_offsets_gives_the_whole_file() {
    let lines: String =
        (1..=9000).map(|number| format!("line {number} {}\n", "x".repeat(number % 50))).collect();
    let (_project, mut wire) = serve([("a.txt", lines.as_str())]);
    let (mut offset, mut read) = (1, String::new());
    for _ in 0..100 {
        let text = wire.text("read_file", json!({"path": "a.txt", "offset": offset}));
        let (content, note) = text.rsplit_once("\n[").expect("a note at the end");
        read.push_str(content);
        read.push('\n');
        let next =
            note.split("offset=").nth(1).map(|rest| rest.trim_end_matches(|end: char| !end.is_ascii_digit()));
        match next {
            Some(next) => offset = next.parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(read.lines().count(), 9000);
    assert_eq!(read, lines);
}

#[test]
fn a_huge_file_is_read_in_parts_without_loading_it() {
    let (project, mut wire) = serve([]);
    // Sparse: 2 GiB that take no room.
    let file = std::fs::File::create(project.join("huge")).unwrap();
    file.set_len(2 << 30).unwrap();
    project.write("long.txt", &format!("{}\nshort\n", "x".repeat(20 << 20)));
    let text = wire.failure("read_file", json!({"path": "huge"}));
    assert!(text.contains("not text"), "{text}");
    let text = wire.text("read_file", json!({"path": "long.txt"}));
    assert!(text.len() < 60_000, "{} bytes", text.len());
    let memory = integration_tests::peak_memory_kib(wire.pid());
    assert!(memory < 60 * 1024, "{memory} KiB");
}

#[test]
fn an_edit_answers_with_a_diff_and_changes_nothing_else() {
    let (project, mut wire) = serve([("a.txt", "one\r\ntwo\r\nthree\r\n")]);
    std::fs::set_permissions(project.join("a.txt"), std::fs::Permissions::from_mode(0o754)).unwrap();
    let edits = json!([{"old_string": "two", "new_string": "2"}]);
    let diff = wire.text("edit_file", json!({"path": "a.txt", "edits": edits, "dry_run": true}));
    assert!(diff.contains("-two") && diff.contains("+2"), "{diff}");
    assert_eq!(project.read("a.txt"), "one\r\ntwo\r\nthree\r\n", "a dry run");
    wire.text("edit_file", json!({"path": "a.txt", "edits": edits}));
    assert_eq!(project.read("a.txt"), "one\r\n2\r\nthree\r\n");
    let mode = std::fs::metadata(project.join("a.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o754);
}

#[test]
fn several_edits_are_all_made_or_none() {
    let (project, mut wire) = serve([("a.txt", "one\ntwo\n")]);
    let edits = json!([{"old_string": "one", "new_string": "1"}, {"old_string": "three", "new_string": "3"}]);
    let text = wire.failure("edit_file", json!({"path": "a.txt", "edits": edits}));
    assert!(text.contains("edit 2 of 2"), "{text}");
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    let edits = json!([{"old_string": "one", "new_string": "two"}, {"old_string": "two", "new_string": "2", "replace_all": true}]);
    wire.text("edit_file", json!({"path": "a.txt", "edits": edits}));
    assert_eq!(project.read("a.txt"), "2\n2\n");
}

#[test]
fn edits_of_one_file_at_once_lose_none() {
    let lines: String = (0..40).map(|number| format!("<{number:02}>\n")).collect();
    let (project, mut wire) = serve([("a.txt", lines.as_str())]);
    let ids: Vec<_> = (0..40)
        .map(|number| {
            let edits =
                json!([{"old_string": format!("<{number:02}>"), "new_string": format!("[{number:02}]")}]);
            wire.ask(
                "tools/call",
                json!({"name": "edit_file", "arguments": {"path": "a.txt", "edits": edits}}),
            )
        })
        .collect();
    // Each either says that it did it, and did, or that somebody else was first.
    let said: Vec<bool> = ids.into_iter().map(|id| wire.answer(id)["result"]["isError"] == false).collect();
    let text = project.read("a.txt");
    for (number, done) in said.into_iter().enumerate() {
        assert_eq!(text.contains(&format!("[{number:02}]")), done, "{number}: {text}");
    }
    assert_eq!(text.lines().count(), 40);
}

#[test]
fn files_move_and_go() {
    let (project, mut wire) = serve([("a.txt", "a\n"), ("b.txt", "b\n")]);
    wire.call("move_file", json!({"source": "a.txt", "destination": "new/folder/c.txt"}));
    assert_eq!(project.read("new/folder/c.txt"), "a\n");
    let text = wire.failure("move_file", json!({"source": "b.txt", "destination": "new/folder/c.txt"}));
    assert!(text.contains("exists"), "{text}");
    wire.call("move_file", json!({"source": "b.txt", "destination": "new/folder/c.txt", "overwrite": true}));
    assert_eq!(project.read("new/folder/c.txt"), "b\n");
    wire.call("delete_file", json!({"path": "new/folder/c.txt"}));
    assert!(!project.join("new/folder/c.txt").exists());
    let result = wire.call("file_exists", json!({"path": "new/folder/c.txt"}));
    assert_eq!(result["structuredContent"]["exists"], false);
    let result = wire.call("directory_exists", json!({"path": "new/folder"}));
    assert_eq!(result["structuredContent"]["exists"], true);
}

#[test]
fn a_listing_is_sorted_bounded_and_says_what_it_leaves_out() {
    let (project, mut wire) = serve([]);
    for number in 0..1500 {
        std::fs::write(project.join(&format!("{number:04}")), "").unwrap();
    }
    let text = wire.text("list_directory", json!({}));
    let names: Vec<_> = text.lines().filter(|line| !line.starts_with('[')).collect();
    assert_eq!(names.len(), 1000);
    assert!(names.is_sorted() && names[0] == "0000", "{names:?}");
    assert!(text.contains("1500") && text.contains("max_results"), "{}", &text[text.len() - 200..]);
    let text = wire.text("list_directory", json!({"max_results": 2000}));
    assert_eq!(text.lines().count(), 1500);
}

#[test]
fn names_that_are_no_plain_words_can_be_listed_read_and_deleted() {
    let (project, mut wire) = serve([]);
    for name in [
        "with blank",
        "ünïcödé",
        "-dash",
        "quote'\"",
        "[brackets]",
        "*star*",
        "new\nline",
        ".hidden",
        "ends.",
    ] {
        wire.text("write_file", json!({"path": name, "content": "x"}));
        assert!(project.join(name).exists(), "{name:?}");
        assert_eq!(wire.text("read_file", json!({"path": name})), "x", "{name:?}");
        wire.call("delete_file", json!({"path": name}));
        assert!(!project.join(name).exists(), "{name:?}");
    }
}

#[test]
fn special_files_do_not_hang_a_call() {
    let (project, mut wire) = serve([]);
    let fifo = project.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(project.join("socket")).unwrap();
    for tool in ["read_file", "read_media_file"] {
        for path in ["fifo", "socket"] {
            let text = wire.failure(tool, json!({"path": path}));
            assert!(text.contains(path), "{text}");
        }
    }
    wire.failure("write_file", json!({"path": "fifo", "content": "x", "mode": "append"}));
    wire.text("search_files", json!({"pattern": "x"}));
    wire.text("list_directory", json!({}));
}

const GIF: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

#[test]
fn a_picture_comes_as_a_picture() {
    let (project, mut wire) = serve([]);
    std::fs::write(project.join("dot.gif"), GIF).unwrap();
    let result = wire.call("read_media_file", json!({"path": "dot.gif"}));
    let image = result["content"].as_array().unwrap().iter().find(|block| block["type"] == "image").unwrap();
    assert_eq!(image["mimeType"], "image/gif");
    assert!(image["data"].as_str().unwrap().starts_with("R0lGODlh"), "{image}");
}

#[test]
fn a_call_from_the_shell_prints_the_result_that_a_client_gets() {
    let project = Project::with([("a.txt", "alpha\n")]);
    std::fs::write(project.join("dot.gif"), GIF).unwrap();
    let mut wire = Wire::connect(project.server(), Era::Modern);
    for (tool, arguments) in [
        ("read_media_file", json!({"path": "dot.gif"})),
        ("read_file", json!({"path": "a.txt"})),
        ("read_file", json!({"path": "none"})),
        ("search_files", json!({"pattern": "alpha"})),
    ] {
        let output =
            project.server().args(["call", "--json", tool, &arguments.to_string()]).output().unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(printed, wire.call(tool, arguments), "{tool}");
        assert_eq!(output.status.success(), printed["isError"] == false, "{output:?}");
    }
}

#[test]
fn a_picture_from_the_shell_is_printed_as_recorded() {
    let project = Project::empty();
    std::fs::write(project.join("dot.gif"), GIF).unwrap();
    let output = project
        .server()
        .args(["call", "--json", "read_media_file", r#"{"path": "dot.gif"}"#])
        .output()
        .unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap(), @r#"
    {
      "resultType": "complete",
      "content": [
        {
          "type": "text",
          "text": "dot.gif: image/gif, 43 bytes"
        },
        {
          "type": "image",
          "data": "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==",
          "mimeType": "image/gif"
        }
      ],
      "isError": false
    }
    "#);
}

#[test]
fn one_file_that_cannot_be_read_does_not_hide_the_others() {
    let (_project, mut wire) = serve([("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
    let text = wire.text("read_multiple_files", json!({"paths": ["a.txt", "none", "b.txt"]}));
    assert!(
        text.contains("alpha") && text.contains("beta") && text.contains("`none` does not exist"),
        "{text}"
    );
    wire.failure("read_multiple_files", json!({"paths": ["none", "nothing"]}));
}

#[test]
fn globs_that_match_more_files_than_one_call_reads_are_an_error_with_their_number() {
    let names: Vec<String> = (0..101).map(|number| format!("many/{number}.txt")).collect();
    let (_project, mut wire) = serve(names.iter().map(|name| (name.as_str(), "x\n")));
    let said = wire.failure("read_multiple_files", json!({"paths": ["many/*.txt"]}));
    assert!(said.contains("101 files") && said.contains("at most 100"), "{said}");
    let text = wire.text("read_multiple_files", json!({"paths": ["many/1*.txt"]}));
    assert_eq!(text.matches("==> many/").count(), 12, "{text}");
}

#[test]
fn a_folder_that_is_removed_while_it_is_served_is_an_error_and_not_the_end() {
    let (project, mut wire) = serve([("a.txt", "a\n")]);
    wire.text("read_file", json!({"path": "a.txt"}));
    std::fs::remove_dir_all(project.path()).unwrap();
    for (tool, arguments) in
        [("read_file", json!({"path": "a.txt"})), ("write_file", json!({"path": "a.txt", "content": "x"}))]
    {
        let text = wire.failure(tool, arguments);
        assert!(text.contains("removed"), "{tool}: {text}");
    }
}

#[test]
fn parts_of_several_files_come_in_one_answer() {
    let lines: String = (1..=90).map(|number| format!("line {number}\n")).collect();
    let (_project, mut wire) = serve([("a.txt", lines.as_str()), ("b.txt", "beta\n")]);
    let paths = json!([{"path": "a.txt", "offset": 40, "limit": 2}, "b.txt", {"path": "a.txt", "offset": 90}, "none"]);
    let text = wire.text("read_multiple_files", json!({"paths": paths, "line_numbers": true}));
    assert!(text.starts_with("==> a.txt <==\n40\tline 40\n41\tline 41\n[lines 40-41 of 90; "), "{text}");
    assert!(text.contains("==> b.txt <==\n1\tbeta\n") && text.contains("90\tline 90\n"), "{text}");
    assert!(text.contains("`none` does not exist"), "{text}");
    let fault = wire.failure("read_multiple_files", json!({"paths": [{"path": "a.txt", "lines": 3}]}));
    assert!(fault.contains("unknown parameter `paths[0].lines`"), "{fault}");
}

#[test]
fn one_edit_needs_no_list_and_lines_are_inserted() {
    let (project, mut wire) = serve([("a.txt", "one\ntwo\n")]);
    let diff = wire.text("edit_file", json!({"path": "a.txt", "old_string": "two", "new_string": "2"}));
    assert!(diff.contains("-two\n+2\n"), "{diff}");
    wire.text("edit_file", json!({"path": "a.txt", "insert_line": 1, "new_string": "1.5"}));
    assert_eq!(project.read("a.txt"), "one\n1.5\n2\n");
    let text = wire
        .failure("edit_file", json!({"path": "a.txt", "old_string": "1\tone\n2\t1.5", "new_string": "x"}));
    assert!(text.contains("old_string has line numbers in it (1 to 2)"), "{text}");
    let text = wire.failure("edit_file", json!({"path": "a.txt"}));
    assert!(text.contains("no change is given"), "{text}");
}

#[test]
fn a_patch_changes_several_files_or_none() {
    let (project, mut wire) = serve([("src/a.rs", "fn a() {}\n"), ("src/b.rs", "fn b() {}\n")]);
    let patch = |b: &str| {
        format!(
            "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-fn a() {{}}\n+fn a() -> u8 {{ 1 }}\n*** Update File: src/b.rs\n\
             *** Move to: src/deep/c.rs\n@@\n-{b}\n+fn c() {{}}\n*** Add File: docs/new.md\n+# New\n*** End Patch\n"
        )
    };
    let text = wire.failure("apply_patch", json!({"patch": patch("fn bb() {}")}));
    assert!(text.contains("`src/b.rs`, hunk 1 of 1") && text.contains("1 in the file: fn b() {}"), "{text}");
    assert_eq!(project.read("src/a.rs"), "fn a() {}\n");
    assert!(!project.join("docs").exists());
    let dry = wire.text("apply_patch", json!({"patch": patch("fn b() {}"), "dry_run": true}));
    assert!(dry.contains("would change:") && dry.contains("+fn a() -> u8 { 1 }"), "{dry}");
    let text = wire.text("apply_patch", json!({"patch": patch("fn b() {}")}));
    assert_eq!(
        text,
        "changed:\nM src/a.rs (+1 -1)\nR src/b.rs -> src/deep/c.rs (+1 -1)\nA docs/new.md (+1 -0)\n"
    );
    assert_eq!(project.read("src/deep/c.rs"), "fn c() {}\n");
    // What git itself prints.
    project.git(&["init", "--quiet", "--initial-branch=main"]);
    project.git(&["add", "."]);
    project.write("src/a.rs", "fn a() -> u8 { 2 }\n");
    std::fs::remove_file(project.join("docs/new.md")).unwrap();
    project.write("src/new.rs", "mod x;\n");
    project.git(&["add", "--intent-to-add", "src/new.rs"]);
    let diff = project.git(&["diff"]);
    project.git(&["checkout", "--quiet", "--", "src/a.rs", "docs/new.md"]);
    std::fs::remove_file(project.join("src/new.rs")).unwrap();
    wire.text("apply_patch", json!({"patch": diff}));
    assert_eq!(project.read("src/a.rs"), "fn a() -> u8 { 2 }\n");
    assert!(!project.join("docs/new.md").exists() && project.read("src/new.rs") == "mod x;\n");
}

#[test]
fn an_outline_has_the_lines_to_read() {
    let (_project, mut wire) = serve([
        ("src/a.py", "class Shop:\n    def total(self):\n        return 1\n"),
        ("src/note.txt", "no code\n"),
    ]);
    let text = wire.text("file_outline", json!({"paths": "src"}));
    assert_eq!(text, "==> src/a.py (3 lines) <==\n1-3 class Shop\n  2-3 def total(self)\n");
    let text = wire.failure("file_outline", json!({"paths": ["src/note.txt"]}));
    assert!(text.contains("no grammar for this kind of file"), "{text}");
    let text = wire.text("search_files", json!({"pattern": "return", "symbol": true}));
    assert!(text.starts_with("src/a.py=2=class Shop > def total(self)\nsrc/a.py:3:"), "{text}");
}

#[test]
fn what_git_keeps_is_read_and_not_written() {
    let (project, mut wire) = serve([("a.txt", "a\n")]);
    project.git(&["init", "--quiet", "--initial-branch=main"]);
    let config = project.read(".git/config");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: .git/hooks/pre-commit\n*** End Patch";
    for (tool, arguments) in [
        ("write_file", json!({"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"})),
        ("write_file", json!({"path": ".GIT/hooks/pre-commit", "content": "#!/bin/sh\n"})),
        ("write_file", json!({"path": "sub/.git", "content": "gitdir: ../x\n"})),
        ("write_file", json!({"path": ".git/config", "content": "x\n", "mode": "append"})),
        (
            "edit_file",
            json!({"path": ".git/config", "old_string": "[core]", "new_string": "[core]\nfsmonitor = x"}),
        ),
        ("apply_patch", json!({"patch": patch})),
        ("move_file", json!({"source": "a.txt", "destination": ".git/hooks/pre-commit"})),
        ("move_file", json!({"source": ".git", "destination": "git"})),
        ("delete_file", json!({"path": ".git/config"})),
        ("create_directory", json!({"path": ".git/x"})),
    ] {
        let text = wire.failure(tool, arguments.clone());
        assert!(text.contains("belongs to git"), "{tool} {arguments}: {text}");
    }
    assert_eq!(project.read(".git/config"), config);
    assert!(!project.join(".git/hooks/pre-commit").exists() && !project.join("sub").exists());
    assert!(wire.text("read_file", json!({"path": ".git/HEAD"})).starts_with("ref: "));
}

#[test]
fn paths_are_read_as_models_write_them_and_a_refusal_names_the_roots() {
    let (project, mut wire) = serve([("src/main.rs", "fn main() {}\n")]);
    assert!(wire.text("read_file", json!({"path": "src\\main.rs"})).starts_with("fn main"));
    let text = wire.text("write_file", json!({"path": "new\\a.txt", "content": "x"}));
    assert!(
        text.contains("`new\\a.txt` was read as `new/a.txt`") && project.join("new/a.txt").exists(),
        "{text}"
    );
    let root = project.path().canonicalize().unwrap().display().to_string();
    for path in ["~/outside.txt", "/etc/passwd", "C:\\Users\\x.txt", "../x.txt"] {
        let text = wire.failure("write_file", json!({"path": path, "content": "x"}));
        assert!(text.contains("outside the allowed roots") && text.contains(&root), "{path}: {text}");
    }
    assert!(!project.join("~").exists() && !project.join("C:").exists());
}

#[test]
fn a_folder_is_told_where_a_file_was_asked_for() {
    let (_project, mut wire) = serve([("src/main.rs", "fn main() {}\n")]);
    let text = wire.text("find_files", json!({"pattern": "src"}));
    assert!(text.contains("`src` is a folder; `src/**` matches the files in it"), "{text}");
    let result = wire.call("file_exists", json!({"path": "src"}));
    assert_eq!(result["structuredContent"]["exists"], false);
    assert_eq!(result["structuredContent"]["note"], "`src` is there: it is a directory, not a regular file");
    let text = wire.text("search_files", json!({"pattern": "main", "include": ["src"]}));
    assert!(text.starts_with("src/main.rs:1:fn main() {}"), "{text}");
}
