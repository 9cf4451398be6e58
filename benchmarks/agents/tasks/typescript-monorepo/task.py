"""A bug in one package of a TypeScript monorepo that two others show, and an option through two packages."""
import json
import shutil
import tempfile
from pathlib import Path

from projects import Faults, commit, from_npm, git, replace, run

HERE = Path(__file__).parent
SOLVED = """
import {enableMapSet} from "immer"
import {expect, it} from "vitest"
import {createHistory, type HistoryOptions} from "history"
import {createEditor} from "editor"

enableMapSet()

it("drops the oldest steps", () => {
	const options: HistoryOptions = {limit: 2}
	const history = createHistory({n: 0}, options)
	for (const n of [1, 2, 3]) history.change(`${n}`, draft => { draft.n = n })
	expect([history.undo(), history.undo(), history.undo()]).toEqual(["3", "2", undefined])
	expect(history.state.n).toBe(1)
})

it("has no limit without one", () => {
	const history = createHistory({n: 0})
	for (let n = 1; n <= 500; n++) history.change("step", draft => { draft.n = n })
	while (history.undo());
	expect(history.state.n).toBe(0)
})

it("refuses a limit below one", () => {
	expect(() => createHistory({n: 0}, {limit: 0})).toThrow(RangeError)
})

it("passes the limit on", () => {
	const editor = createEditor("a", {limit: 1})
	editor.insert(1, "b", "c")
	editor.insert(3, "d", "e")
	editor.undo()
	expect(editor.undo()).toBeUndefined()
	expect(editor.text).toBe("a\\nb\\nc")
})
"""


def package(name, **more):
    return json.dumps({
        "name": name, "version": "1.0.0", "type": "module", "exports": f"./src/{more.pop('entry', 'index')}.ts",
        "scripts": {"test": "vitest run"}, **more,
    }, indent=2) + "\n"


def prepare(folder):
    shutil.copytree(HERE / "packages", folder / "packages")
    with tempfile.TemporaryDirectory() as source:
        from_npm("immer", "10.1.1", source)
        shutil.copytree(Path(source, "src"), folder / "packages/immer/src")
        shutil.copy(Path(source, "LICENSE"), folder / "packages/immer/LICENSE")
    # Removing upwards removes every second item.
    replace(folder / "packages/immer/src/plugins/patches.ts",
            "for (let i = copy_.length - 1; base_.length <= i; --i) {", "for (let i = base_.length; i < copy_.length; i++) {")
    (folder / "packages/immer/package.json").write_text(package("immer", entry="immer"))
    (folder / "packages/history/package.json").write_text(package("history", dependencies={"immer": "*"}))
    (folder / "packages/editor/package.json").write_text(package("editor", dependencies={"immer": "*", "history": "*"}))
    (folder / "package.json").write_text(json.dumps({
        "name": "documents", "private": True, "workspaces": ["packages/*"],
        "scripts": {"test": "npm test --workspaces", "check": "tsc --noEmit -p ."},
        "devDependencies": {"typescript": "^5", "vitest": "^3", "@types/node": "^20"},
    }, indent=2) + "\n")
    (folder / "tsconfig.json").write_text(json.dumps({
        "compilerOptions": {
            "target": "ES2020", "module": "ESNext", "moduleResolution": "bundler", "strict": True, "skipLibCheck": True,
            "types": ["node"],
        },
        "include": ["packages/history", "packages/editor"],
    }, indent=2) + "\n")
    (folder / ".gitignore").write_text("node_modules/\n")
    run("npm", "install", "--silent", "--no-audit", "--no-fund", folder=folder)
    commit(folder, "Import")


def check(folder):
    faults = Faults()
    faults.committed(folder, 2)
    first = git(folder, "rev-list", "--max-parents=0", "HEAD")
    tests = folder / "packages/editor/test/solved.test.ts"
    tests.write_text(SOLVED)
    try:
        faults.command("the tests", "npm", "test", folder=folder)
        faults.command("the compiler", "npm", "run", "check", folder=folder)
    finally:
        tests.unlink()
    changed = git(folder, "diff", "--name-only", first, "HEAD").splitlines()
    for name in ("packages/immer/src/plugins/patches.ts", "packages/history/README.md",
                 "packages/history/test/", "packages/editor/test/"):
        faults.unless(any(path.startswith(name) for path in changed), f"{name} is unchanged")
    # An import may become longer; every other line of the tests stays.
    diff = git(folder, "diff", "--unified=0", first, "HEAD", "--", "packages/*/test/*").splitlines()
    removed = [line for line in diff if line.startswith("-") and not line.startswith(("---", "-import "))]
    faults.unless(not removed, f"tests were changed: {removed}")
    return faults
