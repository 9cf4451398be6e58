"""The tasks of benchmarks/agents, without a network: `python3 -m unittest discover -s benchmarks/tests -p '*_test.py'`."""
import re
import sys
import tempfile
import unittest
from pathlib import Path

AGENTS = Path(__file__).resolve().parents[1] / "agents"
sys.path.insert(0, str(AGENTS))
import agents  # noqa: E402
from projects import commit, git  # noqa: E402


class Tasks(unittest.TestCase):
    def test_each_task_is_complete_and_in_the_readme(self):
        readme = (AGENTS / "README.md").read_text()
        self.assertEqual(sorted(re.findall(r"^\| `([a-z-]+)` \|", readme, re.M)), agents.tasks())
        for task in agents.tasks():
            module = agents.load(task)
            self.assertTrue(module.__doc__ and callable(module.prepare) and callable(module.check), task)
            self.assertIn("{FOLDER}", (AGENTS / "tasks" / task / "task.md").read_text(), task)


class Bisect(unittest.TestCase):
    bisect = agents.load("bisect")
    NAMES = ("group_typed_literal", "group_operator", "group_comparison")
    ORDER = "".join(["for func in [\n", *(f"        {name},\n" for name in NAMES), "]:\n"])

    def test_the_parts_of_a_file_lead_from_the_old_text_to_the_new_one(self):
        old, new = "a\nb\nc\nd\ne\n", "A\nb\nd\ne\nf\n"
        states = list(self.bisect.hunks(old, new))
        self.assertEqual(states, ["A\nb\nc\nd\ne\n", "A\nb\nd\ne\n", new])
        for path in ("sqlparse/sql.py", "tests/test_sql.py"):
            self.assertEqual(self.bisect.parts(path, old, new)[-1], new)
        self.assertEqual(self.bisect.parts("sqlparse/compat.py", old, "")[-1], "")

    def test_the_fault_comes_with_a_wanted_change(self):
        old, new = f"x\n{self.ORDER}y\nz\n", f"X\n{self.ORDER}has_as = False\ny\nnot has_as\nz\n"
        states = self.bisect.parts(self.bisect.BROKEN, old, new)
        wrong = [self.bisect.is_misplaced(state) for state in states]
        self.assertEqual((wrong[0], wrong[-1]), (False, True))
        first = wrong.index(True)
        self.assertIn("not has_as", states[first])
        self.assertNotIn("has_as", states[first - 1])

    def test_an_untouched_history_is_not_solved(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent, "project")
            path = folder / self.bisect.BROKEN
            path.parent.mkdir(parents=True)
            path.write_text(self.ORDER)
            (folder / "tests").mkdir()
            (folder / "tests/test_all.py").write_text("")
            (folder / ".gitignore").write_text(".venv/\n")
            (folder / ".venv/bin").mkdir(parents=True)
            (folder / ".venv/bin/python").symlink_to(sys.executable)
            commit(folder, "Good")
            path.write_text(self.bisect.misplace(self.ORDER))
            commit(folder, "Bad")
            git(folder, "tag", "v0.4.4")
            faults = self.bisect.check(folder)
            bad = git(folder, "rev-parse", "HEAD")
            self.assertIn(f"commit is None instead of {bad}", faults)


if __name__ == "__main__":
    unittest.main()
