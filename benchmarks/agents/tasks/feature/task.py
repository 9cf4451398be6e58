"""A new command over several files of a Python library: function, command, exports, tests, documentation."""
import os

from projects import Faults, commit, from_pypi, git, run, virtual_environment

SOLVED = r"""
import json, subprocess, sys
import dotenv
from dotenv import DotEnvDiff, diff_values

def command(tmp_path, *arguments):
    (tmp_path / 'a.env').write_text('SAME=1\nGONE=x\nCHANGED=old\nBARE\n')
    (tmp_path / 'b.env').write_text('SAME=1\nNEW="y z"\nCHANGED=new\nBARE=now\n')
    return subprocess.run([sys.executable, '-m', 'dotenv', '-f', 'a.env', 'diff', *arguments],
                          cwd=tmp_path, capture_output=True, text=True)

def test_function():
    diff = diff_values({'a': '1', 'b': None}, {'a': '2', 'c': '3'})
    assert isinstance(diff, DotEnvDiff) and isinstance(diff, tuple)
    assert (diff.added, diff.removed, diff.changed) == ({'c': '3'}, {'b': None}, {'a': diff.changed['a']})
    assert list(diff.changed['a']) == ['1', '2']
    assert 'diff_values' in dotenv.__all__ and 'DotEnvDiff' in dotenv.__all__

def test_names(tmp_path):
    result = command(tmp_path, 'b.env')
    assert (result.stdout, result.returncode) == ('~ BARE\n~ CHANGED\n- GONE\n+ NEW\n', 1)

def test_values(tmp_path):
    lines = command(tmp_path, '--values', 'b.env').stdout.splitlines()
    assert lines[1:] == ['~ CHANGED=old -> new', '- GONE=x', '+ NEW=y z']

def test_json(tmp_path):
    result = command(tmp_path, '--format', 'json', 'b.env')
    assert json.loads(result.stdout) == {
        'added': {'NEW': 'y z'}, 'removed': {'GONE': 'x'}, 'changed': {'CHANGED': ['old', 'new'], 'BARE': [None, 'now']}}
    assert result.returncode == 1

def test_same(tmp_path):
    result = command(tmp_path, 'a.env')
    assert (result.stdout, result.returncode) == ('', 0)

def test_missing(tmp_path):
    result = command(tmp_path, 'nowhere.env')
    assert result.returncode == 2 and result.stderr and 'Traceback' not in result.stderr
"""


def prepare(folder):
    from_pypi("python-dotenv", "1.1.1", folder)
    (folder / ".gitignore").write_text(".venv/\n__pycache__/\n*.egg-info/\n.pytest_cache/\n.mypy_cache/\n")
    run("rm", "-rf", "src/python_dotenv.egg-info", folder=folder)
    virtual_environment(folder, "pytest", "sh>=2", "ipython", "click", "-e", ".")
    commit(folder, "Import")


def check(folder):
    faults = Faults()
    faults.committed(folder, 1)
    first = git(folder, "rev-list", "--max-parents=0", "HEAD")
    tests = folder / "tests/test_solved.py"
    tests.write_text(SOLVED)
    try:
        path = {"PATH": f"{folder}/.venv/bin:/usr/local/bin:/usr/bin:/bin"}
        # Two of the project's own tests expect that a file without permissions cannot be read; root reads it.
        without = ["-k", "not permission_error and not unauthorized_file"] if os.geteuid() == 0 else []
        faults.command("the tests", ".venv/bin/python", "-m", "pytest", "-q", *without, folder=folder, env=path)
    finally:
        tests.unlink()
    for name in ("README.md", "CHANGELOG.md", "tests"):
        text = git(folder, "diff", first, "HEAD", "--", name)
        faults.unless("diff" in text, f"{name} is unchanged")
    return faults
