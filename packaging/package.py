#!/usr/bin/env python3
"""Packages of CoreTools from binaries that are built already.

    packaging/package.py archive --target x86_64-unknown-linux-musl --binaries DIR --out dist
    packaging/package.py npm     ... the npm package that carries mcp-stdio for one target
    packaging/package.py npm-main --out dist dist/coretools-mcp-*.tgz
    packaging/package.py wheel   ... the Python wheel that carries mcp-stdio for one target
    packaging/package.py mcpb    ... the bundle for clients that install by a click
    packaging/package.py server-json --out dist [BUNDLE.mcpb ...]
    packaging/package.py installer --out dist
    packaging/package.py gemini-extension --out dist
    packaging/package.py devcontainer --out dist
    packaging/package.py homebrew --out dist dist/coretools-*.tar.gz
    packaging/package.py winget --out dist dist/coretools-*.zip
    packaging/package.py links

Python's library alone. The version is that of Cargo.toml and stands nowhere else. The same input gives the same bytes.
Each command prints the paths of what it wrote.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import urlencode

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LICENSES = ["LICENSE-APACHE", "LICENSE-MIT"]
NPM_NAME = "coretools-mcp"
SHELLS = {"bash": "{}.bash", "zsh": "_{}", "fish": "{}.fish", "powershell": "{}.ps1"}


class Target:
    """One platform, as each registry calls it."""

    def __init__(self, npm, wheel, mcpb, programs=("mcp-stdio", "mcp-http"), suffix=""):
        self.npm, self.wheel, self.mcpb, self.programs, self.suffix = npm, wheel, mcpb, programs, suffix


# A static program runs on every Linux: the npm package names no libc, and the wheel is for both of them.
# What links glibc is packed for this machine alone: PyPI refuses the tag linux_x86_64, as it should.
TARGETS = {
    "x86_64-unknown-linux-musl": Target(
        ("linux", "x64"), "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", "linux"
    ),
    "aarch64-unknown-linux-musl": Target(
        ("linux", "arm64"), "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", "linux"
    ),
    "x86_64-unknown-linux-gnu": Target(("linux", "x64"), "linux_x86_64", "linux"),
    "aarch64-unknown-linux-gnu": Target(("linux", "arm64"), "linux_aarch64", "linux"),
    "aarch64-apple-darwin": Target(("darwin", "arm64"), "macosx_11_0_arm64", "darwin"),
    "x86_64-apple-darwin": Target(("darwin", "x64"), "macosx_10_12_x86_64", "darwin"),
    "x86_64-pc-windows-msvc": Target(("win32", "x64"), "win_amd64", "win32", ("mcp-stdio",), ".exe"),
}


def version():
    manifest = (ROOT / "Cargo.toml").read_text()
    return re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', manifest, re.MULTILINE)[1]


def template(path, repository):
    text = (HERE / path).read_text()
    return json.loads(text.replace("OWNER/REPOSITORY", repository).replace("OWNER", repository.split("/")[0]))


def as_json(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def licenses(folder):
    return [(f"{folder}/{name}", (ROOT / name).read_bytes(), False) for name in LICENSES]


# A package is a list of (path, bytes, whether it can be executed).


def tar(path, files):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data, executable in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755 if executable else 0o644
            archive.addfile(entry, io.BytesIO(data))
    path.write_bytes(gzip.compress(raw.getvalue(), compresslevel=6, mtime=0))
    return path


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, executable in files:
            # 1980 is where the format's time begins. 0o100000 says that it is a file.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def binary(options, target, name="mcp-stdio"):
    return (options.binaries / (name + target.suffix)).read_bytes()


def archive(options, target):
    """The programs with their manual and completions, for whoever unpacks them by hand."""
    folder = f"coretools-{version()}-{options.target}"
    files = [(f"{folder}/{name}", (ROOT / name).read_bytes(), False) for name in ["README.md", "CHANGELOG.md"]]
    files += licenses(folder)
    for name in target.programs:
        program = options.binaries / (name + target.suffix)
        files.append((f"{folder}/{program.name}", program.read_bytes(), True))
        for shell, pattern in SHELLS.items():
            script = subprocess.run([program, "completions", shell], check=True, stdout=subprocess.PIPE).stdout
            files.append((f"{folder}/completions/{shell}/{pattern.format(name)}", script, False))
        pages = options.out / ".man"
        written = subprocess.run([program, "man", "--out", pages], check=True, stdout=subprocess.PIPE, text=True).stdout
        for page in sorted(map(Path, written.splitlines())):
            files.append((f"{folder}/man/man1/{page.name}", page.read_bytes(), False))
            page.unlink()
        pages.rmdir()
    if target.suffix:
        return [zipped(options.out / f"{folder}.zip", files)]
    return [tar(options.out / f"{folder}.tar.gz", files)]


def npm(options, target):
    """What carries the program. npm installs the one that fits the machine."""
    system, processor = target.npm
    name = f"{NPM_NAME}-{system}-{processor}"
    main = template("npm/package.json", options.repository)
    manifest = {
        "name": name,
        "version": version(),
        "description": f"mcp-stdio of CoreTools for {system} on {processor}; installed by {NPM_NAME}",
        "license": main["license"],
        "repository": main["repository"],
        "os": [system],
        "cpu": [processor],
        # Yarn would leave it in its archive, from which nothing can be started.
        "preferUnplugged": True,
    }
    files = [
        ("package/package.json", as_json(manifest), False),
        (f"package/bin/mcp-stdio{target.suffix}", binary(options, target), True),
        *licenses("package"),
    ]
    return [tar(options.out / f"{name}-{version()}.tgz", files)]


def npm_main(options, _):
    """What a user names: a launcher, and one optional dependency for each platform that was packed."""
    manifest = template("npm/package.json", options.repository)
    end = f"-{version()}.tgz"
    platforms = sorted(path.name[: -len(end)] for path in options.packages if path.name.endswith(end))
    if len(platforms) != len(options.packages):
        sys.exit(f"not a package of version {version()} among {', '.join(map(str, options.packages))}")
    manifest["version"] = version()
    manifest["optionalDependencies"] = dict.fromkeys(platforms, version())
    files = [
        ("package/package.json", as_json(manifest), False),
        ("package/README.md", (HERE / "npm/README.md").read_bytes(), False),
        ("package/launcher.js", (HERE / "npm/launcher.js").read_bytes(), True),
        *licenses("package"),
    ]
    return [tar(options.out / f"{NPM_NAME}-{version()}.tgz", files)]


def wheel(options, target):
    """A wheel for one platform and every Python 3 (PEP 427, PEP 639)."""
    name = f"coretools_mcp-{version()}"
    owner = options.repository.split("/")[0]
    readme = (HERE / "pypi/README.md").read_text().replace("OWNER", owner)
    metadata = [
        "Metadata-Version: 2.4",
        "Name: coretools-mcp",
        f"Version: {version()}",
        "Summary: Tools for a coding agent, served over the Model Context Protocol: files, search, git, tests, commands",
        "License-Expression: MIT OR Apache-2.0",
        *(f"License-File: {license}" for license in LICENSES),
        "Requires-Python: >=3.8",
        f"Project-URL: Source, https://github.com/{options.repository}",
        "Description-Content-Type: text/markdown",
        "",
        readme,
    ]
    tags = [f"Tag: py3-none-{platform}" for platform in target.wheel.split(".")]
    about = ["Wheel-Version: 1.0", "Generator: coretools package.py", "Root-Is-Purelib: false", *tags, ""]
    scripts = "[console_scripts]\ncoretools-mcp = coretools_mcp:main\n"
    files = [
        ("coretools_mcp.py", (HERE / "pypi/coretools_mcp.py").read_bytes(), False),
        (f"{name}.data/scripts/mcp-stdio{target.suffix}", binary(options, target), True),
        (f"{name}.dist-info/METADATA", "\n".join(metadata).encode(), False),
        (f"{name}.dist-info/WHEEL", "\n".join(about).encode(), False),
        (f"{name}.dist-info/entry_points.txt", scripts.encode(), False),
        *licenses(f"{name}.dist-info/licenses"),
    ]
    record = []
    for path, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}\n")
    record.append(f"{name}.dist-info/RECORD,,\n")
    files.append((f"{name}.dist-info/RECORD", "".join(record).encode(), False))
    return [zipped(options.out / f"{name}-py3-none-{target.wheel}.whl", files)]


def mcpb(options, target):
    """A bundle (MCPB) for one platform: its format cannot tell processors apart, so a universal one would guess."""
    manifest = template("mcpb/manifest.json", options.repository)
    manifest["version"] = version()
    program = f"server/mcp-stdio{target.suffix}"
    manifest["server"]["entry_point"] = program
    manifest["server"]["mcp_config"]["command"] = "${__dirname}/" + program
    manifest["compatibility"] = {"platforms": [target.mcpb]}
    files = [
        ("manifest.json", as_json(manifest), False),
        (program, binary(options, target), True),
        *((name, data, executable) for name, data, executable in licenses("server")),
    ]
    return [zipped(options.out / f"coretools-{version()}-{options.target}.mcpb", files)]


def server_json(options, _):
    """The entry of the MCP registry."""
    entry = template("server.json", options.repository)
    entry["version"] = version()
    for package in entry["packages"]:
        package["version"] = version()
    for bundle in options.bundles:
        url = f"https://github.com/{options.repository}/releases/download/v{version()}/{bundle.name}"
        entry["packages"].append(
            {
                "registryType": "mcpb",
                "identifier": url,
                "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
                "transport": {"type": "stdio"},
            }
        )
    path = options.out / "server.json"
    path.write_bytes(as_json(entry))
    return [path]


def filled(path, repository):
    """A text with the names of the repository in it."""
    text = (HERE / path).read_text()
    return text.replace("OWNER/REPOSITORY", repository).replace("OWNER", repository.split("/")[0])


def released(text, archives, ending):
    """A text with the version in it, and with the sum of the archive of each target that it names."""
    sums = {}
    for path in archives:
        name = path.name.removesuffix(ending)
        target = name.removeprefix(f"coretools-{version()}-")
        if target == name or name == path.name:
            sys.exit(f"{path} is no archive of version {version()}")
        sums[target] = hashlib.sha256(path.read_bytes()).hexdigest()

    def checksum(match):
        if match[1] not in sums:
            sys.exit(f"there is no archive for {match[1]} among {', '.join(map(str, archives))}")
        return sums[match[1]]

    return re.sub(r"SHA256 ([a-z0-9_-]+)", checksum, text).replace("VERSION", version())


def installer(options, _):
    """The script that installs an archive, with the name of the repository in it."""
    path = options.out / "install.sh"
    path.write_text(filled("install.sh", options.repository))
    path.chmod(0o755)
    return [path]


def gemini_extension(options, _):
    """The extension for Gemini CLI."""
    manifest = template("gemini-extension/gemini-extension.json", options.repository)
    manifest = {"name": manifest.pop("name"), "version": version(), **manifest}
    files = [("gemini-extension.json", as_json(manifest), False), *licenses(".")]
    return [tar(options.out / f"coretools-gemini-extension-{version()}.tar.gz", files)]


def devcontainer(options, _):
    """The feature for development containers, in the form in which it is published."""
    manifest = template("devcontainer/devcontainer-feature.json", options.repository)
    manifest = {"id": manifest.pop("id"), "version": version(), **manifest}
    files = [
        ("./devcontainer-feature.json", as_json(manifest), False),
        ("./install.sh", (HERE / "devcontainer/install.sh").read_bytes(), True),
        ("./coretools-install.sh", filled("install.sh", options.repository).encode(), True),
    ]
    return [tar(options.out / "devcontainer-feature-coretools.tgz", files)]


def homebrew(options, _):
    """The formula for Homebrew. A platform without an archive is left out of it."""
    text = filled("homebrew/coretools.rb", options.repository)
    packed = " ".join(path.name for path in options.archives)
    for system in re.findall(r"  on_(?:macos|linux) do.*?\n  end\n", text, re.DOTALL):
        blocks = re.findall(r"    on_\w+ do\n.*?\n    end\n", system, re.DOTALL)
        without = [block for block in blocks if re.search(r"SHA256 ([a-z0-9_-]+)", block)[1] not in packed]
        rest = system
        for block in without:
            rest = rest.replace(block, "")
        text = text.replace(system, "" if len(without) == len(blocks) else rest)
    path = options.out / "coretools.rb"
    path.write_text(re.sub(r"\n{3,}", "\n\n", released(text, options.archives, ".tar.gz")))
    return [path]


def winget(options, _):
    """The manifests for winget, in the folders in which its repository has them."""
    owner = options.repository.split("/")[0]
    folder = options.out / "winget" / "manifests" / owner[0].lower() / owner / "CoreTools" / version()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, end in [("version", ""), ("installer", ".installer"), ("locale.en-US", ".locale.en-US")]:
        path = folder / f"{owner}.CoreTools{end}.yaml"
        path.write_text(released(filled(f"winget/{name}.yaml", options.repository), options.archives, ".zip"))
        written.append(path)
    return written


def links(*_):
    """The addresses that install the server in an editor by a click, for a README."""
    start = {"command": "npx", "args": ["-y", NPM_NAME]}
    compact = {"separators": (",", ":")}
    cursor = base64.b64encode(json.dumps(start, **compact).encode()).decode()
    vscode = json.dumps({"type": "stdio", **start}, **compact)
    return [
        "https://cursor.com/en/install-mcp?" + urlencode({"name": "coretools", "config": cursor}),
        "https://insiders.vscode.dev/redirect/mcp/install?" + urlencode({"name": "coretools", "config": vscode}),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, make in {
        "archive": archive,
        "npm": npm,
        "npm-main": npm_main,
        "wheel": wheel,
        "mcpb": mcpb,
        "server-json": server_json,
        "installer": installer,
        "gemini-extension": gemini_extension,
        "devcontainer": devcontainer,
        "homebrew": homebrew,
        "winget": winget,
        "links": links,
    }.items():
        command = commands.add_parser(name, help=make.__doc__)
        command.set_defaults(make=make, target=None)
        command.add_argument("--out", type=Path, required=name != "links", help="folder for what is made")
        command.add_argument(
            "--repository",
            default=os.environ.get("GITHUB_REPOSITORY", "OWNER/REPOSITORY"),
            help="on GitHub, as OWNER/NAME (default: $GITHUB_REPOSITORY)",
        )
        if name in ("archive", "npm", "wheel", "mcpb"):
            command.add_argument("--target", choices=TARGETS, required=True)
            command.add_argument("--binaries", type=Path, required=True, help="folder of the built programs")
        if name == "npm-main":
            command.add_argument("packages", nargs="*", type=Path, help="the packages of the platforms")
        if name in ("homebrew", "winget"):
            command.add_argument("archives", nargs="+", type=Path, help="the archives of this release")
        if name == "server-json":
            command.add_argument("bundles", nargs="*", type=Path, help="the bundles of this release")
    options = parser.parse_args()
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    for path in options.make(options, TARGETS.get(options.target)):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
