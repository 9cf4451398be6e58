"""A dependency with a changed interface: lru-memoizer, whose lru-cache was raised from version 6 to 11."""
import json
import re
import shutil
from pathlib import Path

from projects import Faults, commit, from_npm, git, run

HERE = Path(__file__).parent
OLD, NEW = "6.0.0", "11.2.2"
NPM = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")


def prepare(folder):
    from_npm("lru-memoizer", "2.3.0", folder)
    for path in folder.glob("lib/*.js"):
        # The sources that these source maps name are not in the package.
        path.write_text(re.sub(r"\n//# sourceMappingURL=.*", "", path.read_text()))
    for left_over in (".jshintrc", "tsconfig.json"):
        (folder / left_over).unlink()
    (folder / "docs").mkdir()
    (folder / "types").mkdir()
    shutil.copy(HERE / "options.md", folder / "docs/options.md")
    shutil.copy(HERE / "usage.ts", folder / "types/usage.ts")
    manifest = json.loads((folder / "package.json").read_text())
    manifest["scripts"] = {
        "test": "mocha",
        "check": "tsc --noEmit --strict --target es2020 --module node16 --moduleResolution node16 --types node types/usage.ts",
    }
    manifest["dependencies"]["lru-cache"] = OLD
    manifest["devDependencies"] = {
        "@types/lru-cache": "5.1.1", "@types/node": "^20", "chai": "^3.5.0", "mocha": "^10.4.0", "sinon": "^7.3.2", "typescript": "^5",
    }
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (folder / ".gitignore").write_text("node_modules/\n")
    run(*NPM, folder=folder)
    # The project is whole before the upgrade.
    run("npm", "test", folder=folder)
    run("npm", "run", "check", folder=folder)
    commit(folder, "Import")
    run(*NPM, "--save-exact", f"lru-cache@{NEW}", folder=folder)
    commit(folder, f"Update lru-cache from {OLD} to {NEW}")


def check(folder):
    faults = Faults()
    faults.committed(folder, 2)
    bump = git(folder, "rev-list", "--reverse", "HEAD").splitlines()[1]
    faults.command("npm test", "npm", "test", folder=folder)
    faults.command("npm run check", "npm", "run", "check", folder=folder)
    tests = folder / "test/solved.test.js"
    shutil.copy(HERE / "solved.test.js", tests)
    try:
        result = faults.command("what the users rely on", "npx", "--no-install", "mocha", "test/solved.test.js", folder=folder)
        faults.unless("passing" in result.output, "the tests did not run")
    finally:
        tests.unlink()
    for name in ("package.json", "package-lock.json"):
        faults.unless("@types/lru-cache" not in (folder / name).read_text(), f"{name} still has @types/lru-cache")
    lock = json.loads((folder / "package-lock.json").read_text())["packages"]
    version = lock.get("node_modules/lru-cache", {}).get("version", "")
    faults.unless(version.startswith("11."), f"lru-cache is {version!r} in package-lock.json")
    wanted = json.loads((folder / "package.json").read_text()).get("dependencies", {})
    faults.unless(lock[""].get("dependencies") == wanted, "package-lock.json and package.json do not agree")
    changes = dict(reversed(line.split("\t")) for line in git(folder, "diff", "--no-renames", "--name-status", bump, "HEAD").splitlines())
    kept = [path for path, kind in changes.items() if kind != "A" and path.startswith(("test/", "types/", "docs/"))]
    faults.unless(not kept, f"tests, usage or documentation were changed: {kept}")
    faults.unless(any(path.startswith("test/") for path in changes), "no test was added")
    return faults
