"""Starts mcp-stdio, which this package put beside its own script: for `uvx coretools-mcp` and `python -m coretools_mcp`."""

import os
import sys
import sysconfig


def program():
    """The path of mcp-stdio."""
    name = "mcp-stdio.exe" if os.name == "nt" else "mcp-stdio"
    folders = [os.path.dirname(os.path.realpath(sys.argv[0])), sysconfig.get_path("scripts")]
    if sys.version_info >= (3, 10):
        folders.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    sys.exit(f"coretools-mcp: there is no {name} in {', '.join(folders)}; install coretools-mcp again")


def main():
    """Becomes mcp-stdio."""
    path = program()
    arguments = [path, *sys.argv[1:]]
    if os.name != "nt":
        os.execv(path, arguments)
    # Windows would let the caller go on before the program is done.
    import subprocess

    sys.exit(subprocess.run(arguments, check=False).returncode)


if __name__ == "__main__":
    main()
