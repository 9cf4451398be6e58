"""Two planted bugs and three new methods in a Rust crate."""
from projects import Faults, commit, from_crates, git, replace, run

SOLVED = """
use semver::{Version, VersionReq};

fn v(text: &str) -> Version { Version::parse(text).unwrap() }

#[test]
fn caret_below_one() {
    assert!(!VersionReq::parse("^0.2.3").unwrap().matches(&v("0.3.0")));
    assert!(VersionReq::parse("^0.2.3").unwrap().matches(&v("0.2.9")));
}

#[test]
fn order() {
    assert!(v("1.0.0-rc.10") > v("1.0.0-rc.9"));
    assert!(v("1.0.0-rc.9") > v("1.0.0-rc.1"));
}

#[test]
fn next() {
    for (from, major, minor, patch) in [
        ("1.2.3", "2.0.0", "1.3.0", "1.2.4"),
        ("1.2.3-rc.1+b", "2.0.0", "1.3.0", "1.2.3"),
        ("1.3.0-rc.1", "2.0.0", "1.3.0", "1.3.0"),
        ("2.0.0-rc.1", "2.0.0", "2.0.0", "2.0.0"),
        ("0.0.0+build", "1.0.0", "0.1.0", "0.0.1"),
    ] {
        let version = v(from);
        assert_eq!((version.next_major(), version.next_minor(), version.next_patch()), (v(major), v(minor), v(patch)), "{}", from);
    }
}

#[test]
#[should_panic]
fn overflow() { Version::new(1, u64::max_value(), 0).next_minor(); }
"""


def prepare(folder):
    from_crates("semver", "1.0.26", folder)
    replace(folder / "src/eval.rs",
            "    } else if minor > 0 {\n        if ver.minor != minor {\n            return false;",
            "    } else if minor > 0 {\n        if ver.minor != minor {\n            return ver.minor > minor;")
    replace(folder / "src/impls.rs",
            "(true, true) => Ord::cmp(&lhs.len(), &rhs.len()).then_with(string_cmp),\n"
            "                // Spec: \"Numeric identifiers always",
            "(true, true) => string_cmp(),\n                // Spec: \"Numeric identifiers always")
    # The tests that would show the second bug are not there: it is reported by a user.
    text = (folder / "tests/test_version.rs").read_text()
    kept = [line for line in text.splitlines(keepends=True) if "alpha.100" not in line and "beta.11" not in line]
    (folder / "tests/test_version.rs").write_text("".join(kept))
    (folder / ".gitignore").write_text("target/\n")
    commit(folder, "Import")


def check(folder):
    faults = Faults()
    faults.committed(folder, 3)
    first = git(folder, "rev-list", "--max-parents=0", "HEAD")
    copy = folder.with_name(f"{folder.name}-checked")
    git(folder, "worktree", "add", "-q", "--detach", str(copy), "HEAD")
    try:
        (copy / "tests/test_solved.rs").write_text(SOLVED)
        faults.command("the tests", "cargo", "test", "-q", "--offline", folder=copy)
        run("git", "checkout", "-q", first, "--", "tests", folder=copy)
        faults.command("the tests as they were", "cargo", "test", "-q", "--offline", "--tests", folder=copy)
        faults.unless(run("git", "grep", "-l", "next_minor", "--", "tests", folder=folder, check=False).output, "no tests of next_minor")
    finally:
        git(folder, "worktree", "remove", "--force", str(copy))
    return faults
