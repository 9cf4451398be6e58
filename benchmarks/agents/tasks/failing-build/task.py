"""A refactoring that was left half done: a Rust crate with many errors in several files."""
from projects import Faults, commit, from_crates, git, replace, run

SOLVED = """
use bytes::{Buf, BufMut, Bytes};

#[test]
#[should_panic(expected = "advance out of bounds: the len is 2 but advancing by 3")]
fn message() { (&b"ab"[..]).advance(3); }

#[test]
#[should_panic(expected = "advance out of bounds: the len is 1 but advancing by 4")]
fn put() { let mut space = [0; 1]; (&mut space[..]).put_slice(&[1, 2, 3, 4]); }

#[test]
fn chains() {
    let mut chain = (&b"hello "[..]).chain(&b"world"[..]);
    assert_eq!(chain.first_ref(), &&b"hello "[..]);
    assert_eq!(chain.copy_to_bytes(11), Bytes::from_static(b"hello world"));
}

#[test]
fn errors() {
    let error = (&b"ab"[..]).try_get_u32().unwrap_err();
    assert_eq!((error.requested, error.available, error.missing()), (4, 2, 2));
}
"""
MESSAGE = """Tell what is missing, and panic without an error value

- TryGetError::missing() says how many bytes were missing.
- panic_advance takes the two numbers, so that callers that only panic build no error.
- Chain::new and Take's and Limit's free functions `new` become `from_parts`, one name for the same thing.

To do: the callers."""


def prepare(folder):
    from_crates("bytes", "1.10.1", folder)
    manifest = (folder / "Cargo.toml").read_text()
    begin = manifest.index('[target."cfg(loom)".dev-dependencies.loom]') # sixty crates that no test here needs
    end = manifest.find("\n[", begin + 1)
    (folder / "Cargo.toml").write_text(manifest[:begin] + manifest[end + 1:])
    run("cargo", "generate-lockfile", "-q", folder=folder)
    run("cargo", "fetch", "-q", folder=folder)
    (folder / ".gitignore").write_text("target/\n")
    commit(folder, "Import")
    replace(folder / "src/lib.rs", "fn panic_advance(error_info: &TryGetError) -> ! {", "fn panic_advance(requested: usize, available: usize) -> ! {")
    replace(folder / "src/lib.rs", "        error_info.available, error_info.requested\n", "        available, requested\n")
    replace(folder / "src/lib.rs", "impl core::fmt::Display for TryGetError {",
            "impl TryGetError {\n    /// How many bytes were missing.\n    pub fn missing(&self) -> u32 {\n"
            "        self.requested - self.available\n    }\n}\n\nimpl core::fmt::Display for TryGetError {")
    replace(folder / "src/buf/chain.rs", "pub(crate) fn new(a: T, b: U)", "pub(crate) fn from_parts(a: T, b: U)")
    for name in ("take", "limit"):
        text = (folder / f"src/buf/{name}.rs").read_text()
        (folder / f"src/buf/{name}.rs").write_text(text.replace("fn new<T>(inner", "fn from_parts<T>(inner"))
    commit(folder, MESSAGE)


def check(folder):
    faults = Faults()
    faults.committed(folder, 2)
    copy = folder.with_name(f"{folder.name}-checked")
    git(folder, "worktree", "add", "-q", "--detach", str(copy), "HEAD")
    try:
        build = faults.command("the build", "cargo", "build", "--offline", folder=copy)
        faults.unless("warning" not in build.output, f"warnings:\n{build.output}")
        (copy / "tests/test_solved.rs").write_text(SOLVED)
        faults.command("the tests", "cargo", "test", "-q", "--offline", folder=copy)
    finally:
        git(folder, "worktree", "remove", "--force", str(copy))
    for old in ("Chain::new", "take::new", "limit::new"):
        found = run("git", "grep", "-n", old, "--", "src", folder=folder, check=False).output
        faults.unless(not found, f"{old} is still there: {found}")
    return faults
