"""What the tasks share: sources of real projects, planted changes, repositories, and commands with their output."""
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path


def run(*command, folder, check=True, env=None, timeout=600):
    """Runs a program. The result has `returncode` and `output`, standard output and error together."""
    result = subprocess.run(
        [str(word) for word in command], cwd=folder, env={**os.environ, **(env or {})}, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
    )
    result.output = result.stdout
    if check and result.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.output}")
    return result


def from_pypi(name, version, folder):
    with tempfile.TemporaryDirectory() as download:
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", download,
            f"{name}=={version}", folder=download)
        _unpack(next(Path(download).glob("*.tar.gz")), folder)


def from_npm(name, version, folder):
    with tempfile.TemporaryDirectory() as download:
        run("npm", "pack", "--silent", f"{name}@{version}", folder=download)
        _unpack(next(Path(download).glob("*.tgz")), folder)


def from_crates(name, version, folder):
    with tempfile.TemporaryDirectory() as download:
        run("cargo", "init", "-q", "--name", "download", folder=download)
        run("cargo", "add", "-q", f"{name}@={version}", folder=download)
        run("cargo", "vendor", "-q", folder=download)
        shutil.copytree(Path(download, "vendor", name), folder, dirs_exist_ok=True)
    for left_over in (".cargo-checksum.json", ".cargo_vcs_info.json", "Cargo.toml.orig"):
        Path(folder, left_over).unlink(missing_ok=True)
    manifest = Path(folder, "Cargo.toml")
    # A test file that is added is a test target.
    manifest.write_text(manifest.read_text().replace("autotests = false\n", "") + "\n[workspace]\n")


def _unpack(archive, folder):
    with tempfile.TemporaryDirectory() as unpacked:
        # Python knows the filter since 3.11.4 and 3.12.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tarfile.open(archive).extractall(unpacked, **safely)
        shutil.copytree(next(Path(unpacked).iterdir()), folder, dirs_exist_ok=True)


def replace(path, old, new):
    """Replaces one text, which must stand in the file exactly once."""
    text = Path(path).read_text()
    if text.count(old) != 1:
        raise SystemExit(f"{path} has {text.count(old)} times {old!r}")
    Path(path).write_text(text.replace(old, new))


def commit(folder, message, branch=None):
    """Commits everything in the folder, which becomes a repository at the first commit."""
    if not Path(folder, ".git").exists():
        git(folder, "init", "-q", "-b", branch or "main", ".")
        git(folder, "config", "user.name", "dev")
        git(folder, "config", "user.email", "dev@example.com")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def git(folder, *arguments):
    return run("git", *arguments, folder=folder).output.strip()


def commits_since(folder, first):
    return git(folder, "log", "--format=%s", f"{first}..HEAD").splitlines()


def virtual_environment(folder, *packages):
    run(sys.executable, "-m", "venv", ".venv", folder=folder)
    run(".venv/bin/pip", "install", "-q", "--disable-pip-version-check", *packages, folder=folder)


class Faults(list):
    """The faults of a solution, collected while it is checked."""

    def unless(self, condition, fault):
        if not condition:
            self.append(fault)

    def command(self, what, *command, folder, env=None):
        result = run(*command, folder=folder, check=False, env=env)
        if result.returncode:
            self.append(f"{what}: exit code {result.returncode}\n{result.output[-2000:]}")
        return result

    def committed(self, folder, at_least):
        """Nothing is left uncommitted, and there are that many commits on top of the first one."""
        status = git(folder, "status", "--porcelain", "--untracked-files=all")
        self.unless(not status, f"not committed: {status}")
        count = int(git(folder, "rev-list", "--count", "HEAD")) - 1
        self.unless(count >= at_least, f"{count} commits instead of {at_least}")
