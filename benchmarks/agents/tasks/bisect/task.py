"""A search through a history of a Python library for the commit that broke a behaviour which no test covers."""
import difflib
import json
import tempfile
from pathlib import Path

from projects import Faults, commit, from_pypi, git, run, virtual_environment

FIRST, LAST = "0.3.1", "0.4.4"
BROKEN = "sqlparse/engine/grouping.py"
SOLVED = '''
import pytest
import sqlparse
from sqlparse import sql

@pytest.mark.parametrize("literal", ["interval '1 day'", "INTERVAL '6' month", "date '2021-01-01'"])
@pytest.mark.parametrize("first", ["date '2020-01-01'", "a", "current_timestamp"])
def test_operation_of_typed_literals(first, literal):
    text = sqlparse.format(f"select {first} + {literal} as t, 2", reindent=True)
    assert text == f"select {first} + {literal} as t,\\n       2"

def test_operation_is_one_token():
    token = sqlparse.parse("select a from b where c < d + interval '1 day'")[0].tokens[-1].tokens[-1]
    assert isinstance(token, sql.Comparison)
    assert isinstance(token.tokens[-1], sql.Operation)
    assert isinstance(token.tokens[-1].tokens[-1], sql.TypedLiteral)

def test_create_table_as():
    for text in ("create table foo as select coalesce(a, b) from t", "CREATE TABLE foo AS select coalesce(a, b) from t"):
        assert sqlparse.parse(text)[0].get_type() == "CREATE"
    assert isinstance(sqlparse.parse("CREATE TABLE foo AS SELECT f(a) FROM t")[0].tokens[10], sql.Function)
'''


def hunks(old, new):
    """The states of a file between two texts: one difference more in each."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    changes = [change for change in difflib.SequenceMatcher(None, before, after, False).get_opcodes() if change[0] != "equal"]
    for done in range(1, len(changes) + 1):
        lines, position = [], 0
        for _, begin, end, from_, to in changes[:done]:
            lines += before[position:begin] + after[from_:to]
            position = end
        yield "".join(lines + before[position:])


def misplace(text):
    """The fault: typed literals are grouped after the operations that they are part of."""
    name = "        group_typed_literal,\n"
    if text.count(name) != 1:
        raise SystemExit(f"{BROKEN} does not have one {name!r}")
    return text.replace(name, "").replace("        group_comparison,\n", name + "        group_comparison,\n")


def is_misplaced(text):
    return text.index("        group_typed_literal,\n") > text.index("        group_operator,\n")


def parts(path, old, new):
    """The commits about one file, each a state of the file."""
    states = list(hunks(old, new))
    size = 3 if path.startswith("tests") else 2
    if path == BROKEN:
        # The commit with the fault also brings `has_as`, whole.
        whole = next(i for i, state in enumerate(states) if "not has_as" in state)
        begin = next(i for i, state in enumerate(states) if "has_as" in state)
        return states[:begin] + [misplace(state) for state in states[whole:]]
    return states[size - 1:-1:size] + states[-1:]


def texts(folder):
    names = [*folder.glob("sqlparse/**/*.py"), *folder.glob("tests/**/*.py"), folder / "CHANGELOG", *folder.glob("docs/**/*.rst")]
    return {str(path.relative_to(folder)): path.read_text() for path in names}


def prepare(folder):
    from_pypi("sqlparse", FIRST, folder)
    for left_over in ("sqlparse.egg-info", "PKG-INFO", "setup.cfg", "setup.py", "MANIFEST.in", "tox.ini"):
        run("rm", "-rf", left_over, folder=folder)
    (folder / ".gitignore").write_text(".venv/\n__pycache__/\n.pytest_cache/\n")
    virtual_environment(folder, "pytest")
    commit(folder, "Release 0.3.1")
    git(folder, "tag", "v0.3.1")
    with tempfile.TemporaryDirectory() as source:
        last = Path(source)
        from_pypi("sqlparse", LAST, last)
        # The tests that would show the fault are not there: it is reported by a user.
        tests = last / "tests/test_grouping.py"
        lines = tests.read_text().splitlines(keepends=True)
        tests.write_text("".join(line for line in lines if "interval \\'" not in line))
        old, new = texts(folder), texts(last)
        files = {path.relative_to(last): path.read_bytes() for path in last.glob("tests/files/*")}
    for path, content in files.items():
        (folder / path).write_bytes(content)
    commit(folder, "tests/files: the statements of later tests")
    # One thing after another in the library, and the tests and documents in between.
    steps = {True: [], False: []}
    for path in sorted(old.keys() | new.keys(), key=lambda path: (path == "sqlparse/compat.py", path)):
        states = parts(path, old.get(path, ""), new.get(path, "")) if old.get(path) != new.get(path) else []
        for number, state in enumerate(states, 1):
            steps[path.startswith("sqlparse/")].append((path, state, f"{path}: part {number} of {len(states)}"))
    library, rest = steps[True], steps[False]
    for position, step in enumerate(library):
        between = rest[position * len(rest) // len(library):(position + 1) * len(rest) // len(library)]
        for path, state, message in [step, *between]:
            if state or path in new:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(state)
            else:
                (folder / path).unlink()
            commit(folder, message)
    git(folder, "tag", "v0.4.4")


def check(folder):
    faults = Faults()
    status = git(folder, "status", "--porcelain", "--untracked-files=all")
    faults.unless(not status, f"not committed: {status}")
    faults.unless(git(folder, "branch", "--show-current") == "main", "the repository is not on main")
    faults.unless(not (folder / ".git/BISECT_LOG").exists(), "a bisect is under way")
    kept = run("git", "merge-base", "--is-ancestor", "v0.4.4", "main", folder=folder, check=False).returncode == 0
    faults.unless(kept, "the history was rewritten")
    touched = git(folder, "rev-list", "--reverse", "v0.4.4", "--", BROKEN).splitlines()
    wrong = next(name for name in touched if is_misplaced(git(folder, "show", f"{name}:{BROKEN}")))
    try:
        answers = json.loads((folder / "answers.json").read_text())
    except (OSError, ValueError) as error:
        answers = {}
        faults.append(f"answers.json: {error}")
    faults.unless(answers.get("commit") == wrong, f"commit is {answers.get('commit')} instead of {wrong}")
    faults.unless(answers.get("cause"), "answers.json has no cause")
    copy = folder.with_name(f"{folder.name}-checked")
    git(folder, "worktree", "add", "-q", "--detach", str(copy), "main")
    try:
        python = folder / ".venv/bin/python"
        (copy / "tests/test_solved.py").write_text(SOLVED)
        faults.command("the tests", python, "-m", "pytest", "-q", "tests", folder=copy)
        # The tests that were added show the fault: they fail with the library as it was.
        (copy / "tests/test_solved.py").unlink()
        git(copy, "checkout", "-q", "v0.4.4", "--", "sqlparse")
        result = run(python, "-m", "pytest", "-q", "tests", folder=copy, check=False)
        faults.unless(result.returncode == 1, f"no test that was added shows the fault:\n{result.output[-1000:]}")
        git(copy, "checkout", "-q", "main", "--", "sqlparse")
        git(copy, "checkout", "-q", "v0.4.4", "--", "tests")
        faults.command("the tests as they were", python, "-m", "pytest", "-q", "tests", folder=copy)
    finally:
        git(folder, "worktree", "remove", "--force", str(copy))
    return faults
