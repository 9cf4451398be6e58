//! The folder that every server works in.

use crate::BenchmarkError;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the tree, and files in each.
const FOLDERS: usize = 500;
const FILES: usize = 100;
/// Entries of the long folder.
const LISTED: usize = 10_000;
/// Tests of the project.
const TESTS: usize = 5_000;

/// The folder, which goes when this does. What is in it is made when it is first asked for.
#[derive(Debug)]
pub(crate) struct BenchmarkFolder {
    /// Keeps it.
    _folder: tempfile::TempDir,
    dir: PathBuf,
}

/// Something in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixturePart {
    /// A file of 1,088 bytes.
    File,
    /// A folder of 10,000 empty files.
    Folder,
    /// 50,000 files in 500 folders; 500 of them hold a TODO.
    Tree,
    /// The same as a repository with one file changed and one new.
    LargeRepository,
    /// A project and repository of 300 files with documents, one file changed.
    Project,
    /// A project of 5,000 tests for pytest.
    Tests,
    /// A text of 1 GiB.
    Flood,
}

/// Makes a part at a path.
type MakePart = fn(&Path) -> Result<(), BenchmarkError>;

impl BenchmarkFolder {
    pub(crate) fn new() -> Result<Self, BenchmarkError> {
        let folder = tempfile::tempdir()?;
        let dir = folder.path().canonicalize()?;
        Ok(Self { _folder: folder, dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of a part, which is there when this returns.
    pub(crate) fn path(&self, part: FixturePart) -> Result<PathBuf, BenchmarkError> {
        let (name, make): (&str, MakePart) = match part {
            FixturePart::File => ("small.txt", file),
            FixturePart::Folder => ("many", many),
            FixturePart::Tree => ("tree", tree),
            FixturePart::LargeRepository => ("large", large),
            FixturePart::Project => ("project", project),
            FixturePart::Tests => ("tests", tests),
            FixturePart::Flood => ("flood.txt", flood),
        };
        let path = self.dir.join(name);
        if !path.exists() {
            make(&path)?;
        }
        Ok(path)
    }
}

fn file(path: &Path) -> Result<(), BenchmarkError> {
    Ok(fs::write(path, "0123456789abcdef0123456789abcde\n".repeat(34))?)
}

fn many(path: &Path) -> Result<(), BenchmarkError> {
    fs::create_dir(path)?;
    for index in 0..LISTED {
        fs::write(path.join(format!("file_{index:05}.txt")), "")?;
    }
    Ok(())
}

fn tree(path: &Path) -> Result<(), BenchmarkError> {
    let rest = "// a line of no interest\n".repeat(8);
    for index in 0..FOLDERS {
        let part = path.join(format!("part_{index:03}"));
        fs::create_dir_all(&part)?;
        for file in 0..FILES {
            let todo = if file == 50 { "// TODO: one of five hundred\n" } else { "" };
            let text = format!("fn file_{index}_{file}() {{}}\n{todo}{rest}");
            fs::write(part.join(format!("file_{file:03}.rs")), text)?;
        }
    }
    Ok(())
}

fn large(path: &Path) -> Result<(), BenchmarkError> {
    tree(path)?;
    commit(path)?;
    fs::write(path.join("part_250/file_050.rs"), "changed\n")?;
    Ok(fs::write(path.join("part_250/new.rs"), "new\n")?)
}

fn project(path: &Path) -> Result<(), BenchmarkError> {
    for index in 0..300 {
        let text = (0..20).fold(String::new(), |mut text, line| {
            let _ = writeln!(
                text,
                "/// What {line} does.\npub fn f_{index}_{line}() -> u32 {{\n    {line}\n}}\n"
            );
            text
        });
        let part = path.join(format!("src/part_{:02}", index / 10));
        fs::create_dir_all(&part)?;
        fs::write(part.join(format!("file_{index:03}.rs")), text)?;
    }
    fs::create_dir(path.join("docs"))?;
    for name in ["CONVENTIONS", "STACK", "ROADMAP"] {
        let text = format!("# {name}\n\n{}", "Words of it.\n".repeat(50));
        fs::write(path.join(format!("docs/{name}.md")), text)?;
    }
    commit(path)?;
    Ok(fs::write(path.join("src/part_05/file_050.rs"), "// changed\n")?)
}

fn tests(path: &Path) -> Result<(), BenchmarkError> {
    fs::create_dir(path)?;
    fs::write(path.join("pytest.ini"), "[pytest]\n")?;
    let cases = (0..TESTS).fold(String::new(), |mut text, index| {
        let _ = writeln!(text, "def test_{index}(): pass");
        text
    });
    fs::write(path.join("test_many.py"), cases)?;
    let venv = crate::home().join("../.venv").canonicalize();
    let venv = venv.map_err(|_| "no .venv with pytest: see tests/python/requirements.txt")?;
    Ok(std::os::unix::fs::symlink(venv, path.join(".venv"))?)
}

fn flood(path: &Path) -> Result<(), BenchmarkError> {
    let line = format!("{}\n", "0123456789abcdef".repeat(4).split_at(63).0);
    let block = line.repeat(1 << 14);
    let mut file = fs::File::create(path)?;
    for _ in 0..1 << 10 {
        file.write_all(block.as_bytes())?;
    }
    Ok(())
}

fn commit(folder: &Path) -> Result<(), BenchmarkError> {
    for words in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0", "commit", "--quiet", "-m", "all"],
    ] {
        let output = Command::new("git")
            .args(words)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()?;
        if !output.status.success() {
            return Err(format!("git {words:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    Ok(())
}
