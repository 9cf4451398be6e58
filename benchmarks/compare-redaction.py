#!/usr/bin/env python3
"""Compares the redaction of CoreTools with detect-secrets (PyPI) and secretlint (npm) on crates/redaction/corpus.

    python3 benchmarks/compare-redaction.py

It makes a virtual environment and a folder of npm packages below `target/compare-redaction`, and writes each text of
the corpus as a file. A scanner has found a secret if it reports anything in that file, and an alarm is false if it
reports anything in a file without one. That is generous to the scanners: they need not find the secret itself.
"""

import json
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "compare-redaction"
SECRETLINT = ["secretlint@13.0.6", "@secretlint/secretlint-rule-preset-recommend@13.0.6"]
DETECT_SECRETS = "detect-secrets==1.5.0"


def run(*command, **more):
    return subprocess.run(command, check=False, text=True, capture_output=True, cwd=FOLDER, **more)


def detect_secrets(kind):
    """Returns the number of files in which detect-secrets reports something, with all of its plugins."""
    environment = FOLDER / "venv"
    if not environment.exists():
        venv.create(environment, with_pip=True)
        run(environment / "bin/pip", "install", "--quiet", DETECT_SECRETS)
    # Its filters leave out what looks like a test; the corpus is all made up.
    found = run(environment / "bin/detect-secrets", "scan", "--all-files", "--no-verify", kind)
    return len(json.loads(found.stdout)["results"])


def secretlint(kind):
    """Returns the number of files in which secretlint reports something, with its recommended rules."""
    if not (FOLDER / "node_modules").exists():
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER), *SECRETLINT)
    rules = {"rules": [{"id": "@secretlint/secretlint-rule-preset-recommend"}]}
    (FOLDER / ".secretlintrc.json").write_text(json.dumps(rules))
    found = run("node_modules/.bin/secretlint", "--format", "json", f"{kind}/*.txt")
    return sum(1 for file in json.loads(found.stdout) if file["messages"])


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    example = ["cargo", "run", "--quiet", "--package", "redaction", "--example", "write_corpus", "--", str(FOLDER)]
    subprocess.run(example, check=True, cwd=ROOT)
    print("| scanner | secrets found of 200 | false alarms of 200 |")
    print("|---|---|---|")
    for name, scan in [(DETECT_SECRETS, detect_secrets), (SECRETLINT[0], secretlint)]:
        print(f"| {name} | {scan('secrets')} | {scan('harmless')} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
