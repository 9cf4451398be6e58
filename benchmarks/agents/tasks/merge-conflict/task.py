"""Two branches that changed the same functions of a Python library, with conflicts in three files."""
from projects import Faults, commit, from_pypi, git, replace, run, virtual_environment

SOLVED = """
import pytest
from toolz.itertoolz import partition_all, sliding_window
from toolz.curried import sliding_window as curried

def test_both():
    assert list(sliding_window(2, [1, 2, 3, 4, 5], step=2)) == [(1, 2), (3, 4)]
    assert list(sliding_window(2, [1, 2, 3, 4, 5], step=2, partial=True)) == [(1, 2), (3, 4), (5,)]
    assert list(sliding_window(3, [1, 2], partial=True)) == [(1, 2)]
    assert list(sliding_window(3, [1, 2])) == []
    assert list(sliding_window(2, [1, 2, 3])) == [(1, 2), (2, 3)]
    assert list(sliding_window(2, [], partial=True)) == []

@pytest.mark.parametrize('wrong', [0, -1])
def test_faults(wrong):
    with pytest.raises(ValueError):
        sliding_window(wrong, [1])
    with pytest.raises(ValueError):
        sliding_window(2, [1], step=wrong)
"""
ORIGINAL = "    return zip(*(collections.deque(itertools.islice(it, i), 0) or it\n               for i, it in enumerate(itertools.tee(seq, n))))\n"


def prepare(folder):
    from_pypi("toolz", "1.0.0", folder)
    (folder / ".gitignore").write_text(".venv/\n__pycache__/\n*.egg-info/\n.pytest_cache/\n")
    (folder / "CHANGES.md").write_text("# Changes\n\n## Unreleased\n\n- `random_sample` takes a generator.\n")
    run("rm", "-rf", "toolz.egg-info", folder=folder)
    virtual_environment(folder, "pytest")
    commit(folder, "Import")
    source, tests = folder / "toolz/itertoolz.py", folder / "toolz/tests/test_itertoolz.py"

    git(folder, "checkout", "-q", "-b", "windows")
    replace(source, "def sliding_window(n, seq):\n", "def sliding_window(n, seq, partial=False):\n")
    replace(source, ORIGINAL,
            "    if not partial:\n        return zip(*(collections.deque(itertools.islice(it, i), 0) or it\n"
            "                   for i, it in enumerate(itertools.tee(seq, n))))\n"
            "    return _partial_windows(n, seq)\n\n\n"
            "def _partial_windows(n, seq):\n"
            "    window = collections.deque(maxlen=n)\n"
            "    seen = 0\n"
            "    for item in seq:\n"
            "        window.append(item)\n"
            "        seen += 1\n"
            "        if seen >= n:\n"
            "            yield tuple(window)\n"
            "    if 0 < seen < n:\n"
            "        yield tuple(window)\n")
    replace(tests, "def test_sliding_window_of_short_iterator():\n",
            "def test_sliding_window_partial():\n"
            "    assert list(sliding_window(3, [1, 2], partial=True)) == [(1, 2)]\n"
            "    assert list(sliding_window(2, [1, 2, 3], partial=True)) == [(1, 2), (2, 3)]\n\n\n"
            "def test_sliding_window_of_short_iterator():\n")
    replace(folder / "CHANGES.md", "- `random_sample`", "- `sliding_window(partial=True)` also yields what is left at the end:\n  a last window that is not full is not lost.\n- `random_sample`")
    commit(folder, "sliding_window: partial=True keeps the items of a last window that is not full\n\nNo item of the input is lost with it, whatever the other arguments are.")

    git(folder, "checkout", "-q", "main")
    replace(source, "def sliding_window(n, seq):\n", "def sliding_window(n, seq, step=1):\n")
    replace(source, ORIGINAL,
            "    if n < 1 or step < 1:\n"
            "        raise ValueError('n and step must be positive, not %r and %r' % (n, step))\n"
            "    windows = zip(*(collections.deque(itertools.islice(it, i), 0) or it\n"
            "                    for i, it in enumerate(itertools.tee(seq, n))))\n"
            "    return itertools.islice(windows, None, None, step)\n")
    replace(tests, "def test_sliding_window_of_short_iterator():\n",
            "def test_sliding_window_step():\n"
            "    assert list(sliding_window(2, [1, 2, 3, 4, 5], step=2)) == [(1, 2), (3, 4)]\n"
            "    with pytest.raises(ValueError):\n"
            "        sliding_window(2, [1, 2], step=0)\n\n\n"
            "def test_sliding_window_of_short_iterator():\n")
    text = tests.read_text()
    if "import pytest" not in text:
        tests.write_text("import pytest\n" + text)
    replace(folder / "CHANGES.md", "- `random_sample`", "- `sliding_window(step=2)` moves the window by more than one item. Arguments that are\n  not positive are an error at the call, not at the first item.\n- `random_sample`")
    commit(folder, "sliding_window: step, and errors at the call\n\nA wrong argument raises ValueError at the call itself, before anything is iterated.")


def check(folder):
    faults = Faults()
    status = git(folder, "status", "--porcelain", "--untracked-files=all")
    faults.unless(not status, f"not committed: {status}")
    parents = git(folder, "log", "-1", "--merges", "--format=%P", "main").split()
    faults.unless(git(folder, "rev-parse", "windows") in parents, "main has no merge commit of windows")
    tests = folder / "toolz/tests/test_solved.py"
    tests.write_text(SOLVED)
    try:
        faults.command("the tests", ".venv/bin/python", "-m", "pytest", "-q", "toolz", folder=folder)
    finally:
        tests.unlink()
    text = (folder / "CHANGES.md").read_text()
    faults.unless("step=2" in text and "partial=True" in text and "<<<<" not in text, "CHANGES.md lacks one side")
    text = (folder / "toolz/tests/test_itertoolz.py").read_text()
    faults.unless("test_sliding_window_step" in text and "test_sliding_window_partial" in text, "the tests of one side are lost")
    return faults
