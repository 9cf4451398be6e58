//! Projects of the usual toolchains are built and tested by a role that may not do everything: its programs are confined to
//! the default level and have the minimal environment. Nothing is downloaded.

use integration_tests::{Era, Project, Wire, installed, require};
use process_runner::{Confinement, ConfinementLevel};
use serde_json::json;

/// Calls of a role that may not do everything, in a project with these files. `None` where a program is missing, or a layer
/// of the default level.
fn confined<'a>(
    programs: &[&str],
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Option<(Project, Wire)> {
    for program in programs {
        require(installed(program), &format!("no {program}; `.ci/run tools` installs it"))?;
    }
    let status = Confinement::new().network(true).status();
    let has_level = status.level >= ConfinementLevel::Namespaces;
    require(has_level.then_some(()), &status.to_string())?;
    let project = Project::with(files);
    let mut command = project.server();
    command.args(["--role", "dev"]).env("SHOP_BACKEND", "plum-orchard-17");
    let wire = Wire::connect(command, Era::Modern);
    Some((project, wire))
}

/// Runs a line of a shell that must succeed, and returns what it printed.
#[track_caller]
fn works(wire: &mut Wire, line: &str) -> String {
    // In the background, since a build may print nothing for longer than the client waits for an answer.
    let started =
        wire.outcome("start_command", json!({"command": ["sh", "-c", line], "timeout_ms": 600_000})).0;
    loop {
        let read = json!({"id": started["id"], "wait_for_exit": true, "wait_ms": 10_000});
        wire.text("read_command_output", read);
        let list = wire.outcome("list_commands", json!({})).0;
        let command = list["commands"].as_array().unwrap().iter().find(|known| known["id"] == started["id"]);
        if command.unwrap()["state"] != "running" {
            break;
        }
    }
    let all = json!({"id": started["id"], "cursor": 0, "max_bytes": 200_000});
    let text = wire.text("read_command_output", all);
    assert!(text.contains("exit code 0"), "{line}: {text}");
    assert!(!text.contains("plum-orchard"), "{text}");
    text
}

#[test]
fn cargo_tests_a_package_that_depends_on_another() {
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"confined-sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
             [dependencies]\nhelper = { path = \"helper\" }\n[workspace]\n",
        ),
        ("build.rs", "fn main() { println!(\"cargo:rustc-env=BUILT=by a script\"); }\n"),
        (
            "src/lib.rs",
            "#[test]\nfn adds() { assert_eq!((helper::two(), env!(\"BUILT\")), (2, \"by a script\")); }\n",
        ),
        ("helper/Cargo.toml", "[package]\nname = \"helper\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("helper/src/lib.rs", "pub fn two() -> u8 { 2 }\n"),
    ];
    let Some((_project, mut wire)) = confined(&["cargo"], files) else { return };
    let text = works(&mut wire, "CARGO_TARGET_DIR=target cargo test --offline 2>&1");
    assert!(text.contains("test adds ... ok"), "{text}");
}

#[test]
fn npm_installs_a_packed_package_and_runs_the_tests() {
    let files = [
        ("package/package.json", r#"{"name": "local", "version": "1.0.0", "main": "index.js"}"#),
        ("package/index.js", "module.exports = () => 42;\n"),
        (
            "package.json",
            r#"{"name": "own", "version": "1.0.0", "scripts": {"test": "node --test test.cjs"}}"#,
        ),
        (
            "test.cjs",
            "require('node:test').test('uses it', () => require('node:assert').equal(require('local')(), 42));\n",
        ),
    ];
    let Some((_project, mut wire)) = confined(&["npm", "node"], files) else { return };
    let text = works(
        &mut wire,
        "npm pack --silent ./package && npm install --silent --offline --no-audit ./local-1.0.0.tgz && npm test",
    );
    assert!(text.contains("pass 1"), "{text}");
}

#[test]
fn go_builds_a_program_and_tests_its_packages() {
    let files = [
        ("go.mod", "module example.org/sample\n\ngo 1.18\n"),
        (
            "main.go",
            "package main\n\nimport \"example.org/sample/add\"\n\nfunc main() { println(add.Two()) }\n",
        ),
        ("add/add.go", "package add\n\nfunc Two() int { return 2 }\n"),
        (
            "add/add_test.go",
            "package add\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) { if Two() != 2 { t.Fail() } }\n",
        ),
    ];
    let Some((_project, mut wire)) = confined(&["go"], files) else { return };
    let text = works(&mut wire, "go build -o program . && ./program 2>&1 && go test ./add");
    assert!(text.contains("\n2\n") && text.contains("ok"), "{text}");
}

#[test]
fn maven_compiles_and_tests_a_project() {
    let files = [
        ("pom.xml", include_str!("../runners/projects/maven/pom.xml")),
        ("settings.xml", include_str!("../runners/projects/maven/settings.xml")),
        (
            "src/main/java/demo/Two.java",
            "package demo;\npublic class Two { public static int two() { return 2; } }\n",
        ),
        (
            "src/test/java/demo/TwoTest.java",
            "package demo;\nimport org.junit.jupiter.api.Test;\nclass TwoTest {\n  @Test void isTwo() { \
             org.junit.jupiter.api.Assertions.assertEquals(2, Two.two()); }\n}\n",
        ),
    ];
    let Some((_project, mut wire)) = confined(&["mvn", "javac"], files) else { return };
    let text = works(&mut wire, "mvn --batch-mode --offline --settings settings.xml test");
    assert!(text.contains("Tests run: 1, Failures: 0") && text.contains("BUILD SUCCESS"), "{text}");
}

#[test]
fn pip_installs_a_wheel_and_a_test_uses_it() {
    // A wheel is an archive with its metadata; to make it needs nothing but Python.
    let wheel = "import zipfile\n\
        info = 'sample-1.0.dist-info/'\n\
        files = {'sample.py': 'def two(): return 2\\n',\n\
          info + 'METADATA': 'Metadata-Version: 2.1\\nName: sample\\nVersion: 1.0\\n',\n\
          info + 'WHEEL': 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'}\n\
        files[info + 'RECORD'] = ''.join(name + ',,\\n' for name in [*files, info + 'RECORD'])\n\
        with zipfile.ZipFile('sample-1.0-py3-none-any.whl', 'w') as archive:\n\
        \x20   for name, text in files.items(): archive.writestr(name, text)\n";
    let files = [
        ("wheel.py", wheel),
        (
            "test_sample.py",
            "import sample, unittest\nclass Two(unittest.TestCase):\n    def test_two(self): \
                            self.assertEqual(sample.two(), 2)\n",
        ),
    ];
    let pip = std::process::Command::new("python3").args(["-m", "pip", "--version"]).output();
    let has_pip = pip.is_ok_and(|output| output.status.success());
    if require(has_pip.then_some(()), "no pip; apt install python3-pip").is_none() {
        return;
    }
    let Some((_project, mut wire)) = confined(&["python3"], files) else { return };
    let text = works(
        &mut wire,
        // The interpreter itself: the shim of a version manager counts the programs that there are after each `pip`.
        "python=$(python3 -c 'import sys; print(sys.executable)') && $python wheel.py && \
         $python -m pip install --disable-pip-version-check --no-index --find-links . --target packages sample && \
         PYTHONPATH=packages $python -m unittest test_sample 2>&1",
    );
    assert!(text.contains("Successfully installed sample-1.0") && text.contains("OK"), "{text}");
}
