use super::*;
use crate::filesystem::limits::MAX_TEXT_BYTES;
use crate::filesystem::testing::ProjectFixture;

const RUST: &str = "//! Docs.\n\nuse std::fmt;\n\n/// A point.\n#[derive(Debug)]\npub struct Point {\n    x: u8,\n}\n\n\
                    impl fmt::Display for Point {\n    fn fmt(\n        &self,\n        f: &mut fmt::Formatter<'_>,\n    ) -> fmt::Result {\n        f.write_str(\"\")\n    }\n}\n\nconst ORIGIN: Point = Point { x: 0 };\n\nfn main() {}\n";

fn outline(project: &ProjectFixture, paths: &[&str]) -> String {
    let input = FileOutline::new(paths.iter().copied());
    file_outline(&project.workspace, &input, &project.cancel).unwrap().to_text()
}

#[test]
fn definitions_have_lines_and_signatures_and_are_nested() {
    let project = ProjectFixture::with(&[
        ("a.rs", RUST),
        (
            "b.py",
            "import os\n\nLIMIT = 3\n\nclass Shop:\n    \"\"\"Sells.\"\"\"\n\n    @property\n    def total(self) -> int:\n        return 1\n\nasync def main():\n    pass\n",
        ),
        (
            "c.ts",
            "import x from 'x';\nexport interface Job {\n  run(): void;\n}\nexport class Runner {\n  count = 0;\n  start(job: Job) {\n    job.run();\n  }\n}\nexport const go = async (x: number) => {\n  return x;\n};\n",
        ),
    ]);
    insta::assert_snapshot!(outline(&project, &["a.rs", "b.py", "c.ts"]), @r"
    ==> a.rs (22 lines) <==
    7-9 pub struct Point
    11-18 impl fmt::Display for Point
      12-17 fn fmt( &self, f: &mut fmt::Formatter<'_>, ) -> fmt::Result
    20 const ORIGIN: Point = Point { x: 0 }
    22 fn main()
    ==> b.py (13 lines) <==
    3 constant LIMIT = 3
    5-10 class Shop
      9-10 def total(self) -> int
    12-13 async def main()
    ==> c.ts (13 lines) <==
    2-4 interface Job
      3 method run(): void
    5-10 class Runner
      6 field count = 0
      7-9 method start(job: Job)
    11-13 const go = async (x: number) =>
    ");
}

#[test]
fn what_has_no_grammar_or_is_missing_is_said_in_its_place() {
    let project = ProjectFixture::with(&[
        ("a.rb", "def x\nend\n"),
        ("b.rs", "fn a() {}\nfn main() {\n"),
        ("empty.go", ""),
    ]);
    insta::assert_snapshot!(outline(&project, &["a.rb", "b.sr", "../x.rs", "b.rs", "empty.go"]), @r"
    ==> a.rb <==
    [error: no grammar for this kind of file; there are Rust, Python, JavaScript, TypeScript, Go, Java, C#, C and C++]
    ==> b.sr <==
    [error: `b.sr` does not exist; did you mean `b.rs`?]
    ==> ../x.rs <==
    [error: `../x.rs` leads outside the allowed roots; use a path relative to the first root, or an absolute path beneath a root]
    ==> b.rs (2 lines, parsed with errors) <==
    1 fn a()
    ==> empty.go (0 lines) <==
    [no definitions]
    ");
    let error = file_outline(&project.workspace, &FileOutline::default(), &project.cancel).unwrap_err();
    assert_eq!(error.to_string(), "`paths` must name 1 to 100 files or folders");
}

#[test]
fn a_folder_stands_for_its_source_files_without_what_git_ignores() {
    let project = ProjectFixture::with(&[
        (".gitignore", "gen/\n"),
        ("src/b.rs", "fn b() {}\n"),
        ("src/a/mod.rs", "fn a() {}\n"),
        ("src/gen/c.rs", "fn c() {}\n"),
        ("src/notes.md", "# x\n"),
        ("docs/x.md", ""),
    ]);
    assert_eq!(
        outline(&project, &["src"]),
        "==> src/a/mod.rs (1 line) <==\n1 fn a()\n==> src/b.rs (1 line) <==\n1 fn b()\n"
    );
    assert!(
        outline(&project, &["docs"]).starts_with("[`docs` has no source files in the languages Rust, Python")
    );
}

#[test]
fn an_outline_is_bounded_by_leaving_out_what_is_nested_and_then_files() {
    let file = |inner: usize| {
        let functions: String =
            (0..inner).map(|index| format!("    fn function_number_{index}() {{}}\n")).collect();
        format!("mod outer {{\n{functions}}}\n")
    };
    let project = ProjectFixture::new();
    for index in 0..20 {
        project.put(&format!("src/f{index:02}.rs"), file(100));
    }
    let text = outline(&project, &["src"]);
    assert!(
        text.len() <= MAX_TEXT_BYTES && text.contains("==> src/f19.rs (102 lines) <==\n1-102 mod outer\n"),
        "{text}"
    );
    assert!(text.ends_with("[definitions in others were left out; name fewer files to see them]\n"));
    project.put("one.rs", file(3000));
    let text = outline(&project, &["one.rs"]);
    assert!(
        text.len() <= MAX_TEXT_BYTES + 100 && text.contains(" of 3001 definitions are given]"),
        "{}",
        text.len()
    );
}

#[test]
fn functions_within_a_long_function_are_told_and_those_within_a_short_one_are_not() {
    let long = format!(
        "function outer() {{\n  const x = 1;\n  function first() {{\n    return 1;\n  }}\n{}  if (x) {{\n    function second() {{}}\n  }}\n}}\n",
        "  x;\n".repeat(60)
    );
    let short = "function outer() {\n  function first() {}\n}\n";
    let project = ProjectFixture::with(&[("long.js", long.as_str()), ("short.js", short)]);
    assert_eq!(
        outline(&project, &["long.js", "short.js"]),
        "==> long.js (69 lines) <==\n1-69 function outer()\n  3-5 function first()\n  67 function second()\n==> short.js (3 lines) <==\n1-3 function outer()\n"
    );
}
