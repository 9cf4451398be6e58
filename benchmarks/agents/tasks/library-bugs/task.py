"""Two planted bugs and a new function in a Python library."""
from projects import Faults, commit, from_pypi, git, replace, run, virtual_environment

SOLVED = """
from boltons.cacheutils import LRU, cached
from boltons.iterutils import chunked_by_weight

def test_keywords_are_no_pairs():
    seen = []
    @cached(LRU())
    def f(*args, **kwargs):
        seen.append((args, kwargs))
        return args, kwargs
    assert f('a', b=1) == (('a',), {'b': 1})
    assert f('a', ('b', 1)) == (('a', ('b', 1)), {})

def test_chunks():
    assert list(chunked_by_weight(['a', 'bb', 'ccc', 'd'], 3)) == [['a', 'bb'], ['ccc'], ['d']]
    assert list(chunked_by_weight([5, 1, 1, 9, 2], 3, weight=lambda n: n)) == [[5], [1, 1], [9], [2]]
    assert list(chunked_by_weight([], 3)) == []
    assert next(iter(chunked_by_weight(iter(['aaaa', 'b']), 1))) == ['aaaa']
"""


def prepare(folder):
    from_pypi("boltons", "25.0.0", folder)
    replace(folder / "boltons/iterutils.py",
            "        if i + chunk_size >= input_stop:\n            return\n",
            "        if i + chunk_size > input_stop:\n            return\n")
    replace(folder / "boltons/cacheutils.py",
            "        key.append(kwarg_mark)\n        key.extend(sorted_items)\n    if typed:",
            "        key.extend(sorted_items)\n    if typed:")
    (folder / ".gitignore").write_text(".venv/\n__pycache__/\n*.egg-info/\n.pytest_cache/\n")
    virtual_environment(folder, "pytest<8")
    commit(folder, "Import")


def check(folder):
    faults = Faults()
    faults.committed(folder, 3)
    first = git(folder, "rev-list", "--max-parents=0", "HEAD")
    copy = folder.with_name(f"{folder.name}-checked")
    git(folder, "worktree", "add", "-q", "--detach", str(copy), "HEAD")
    try:
        python = folder / ".venv/bin/python"
        (copy / "tests/test_solved.py").write_text(SOLVED)
        faults.command("the tests", python, "-m", "pytest", "-q", "tests", folder=copy)
        faults.command("the doctests", python, "-m", "pytest", "-q", "--doctest-modules", "boltons/iterutils.py", folder=copy)
        run("git", "checkout", "-q", first, "--", "tests", folder=copy)
        faults.command("the tests as they were", python, "-m", "pytest", "-q", "tests", folder=copy)
        found = run("git", "grep", "-l", "chunked_by_weight", "--", "tests", folder=folder, check=False).output
        faults.unless(found, "chunked_by_weight has no test")
    finally:
        git(folder, "worktree", "remove", "--force", str(copy))
    return faults
