"""Drives a wrapped server with the official `mcp` package.

python wrap.py PROXY filesystem|git MODE everything|restricted|orchestrator|worker BACKEND...

`restricted` is told by a flag what it may not use, `worker` by a policy file; `everything` and `orchestrator` may
use all there is, the latter under the same policy.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
from mcp import MCPError, StdioServerParameters
from mcp.client import Client

PROXY, WHICH, MODE, ROLE, *BACKEND = sys.argv[1:]
FOLDER = str(Path.cwd().resolve())
RESTRICTED = ROLE in ("restricted", "worker")
HIDDEN = {
    "filesystem": ["write_file", "edit_file", "move_file", "create_directory"],
    "git": ["git_commit", "git_add", "git_reset", "git_checkout", "git_create_branch"],
}[WHICH]
READ = {
    "filesystem": ("read_text_file", {"path": FOLDER + "/a.txt"}, "hello"),
    "git": ("git_status", {"repo_path": FOLDER}, "a.txt"),
}[WHICH]
CHANGE = {
    "filesystem": ("write_file", {"path": FOLDER + "/b.txt", "content": "new"}),
    "git": ("git_add", {"repo_path": FOLDER, "files": ["a.txt"]}),
}[WHICH]


def backend() -> int:
    """The server's process, whose command line ends with this folder."""
    end = time.monotonic() + 20
    while True:
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")[:-1]
            except OSError:
                continue
            if line and line[-1] == FOLDER.encode() and b"wrap" not in line and line[0] == BACKEND[0].encode():
                return int(entry.name)
        assert time.monotonic() < end, "the server does not run"
        time.sleep(0.02)


def policy() -> str:
    """A policy that takes from a worker what writes; its path."""
    file = Path(os.environ["POLICY_FOLDER"]) / "roles.toml"
    names = ", ".join(f'"{name}"' for name in HIDDEN)
    file.write_text(
        f"version = 1\nexternal_tools = [{names}]\n"
        f'[roles.orchestrator]\nallow = ["*"]\n[roles.worker]\nallow = ["*"]\ndeny = [{names}]\n'
    )
    file.chmod(0o600)
    return str(file)


def text(result) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


def changed() -> bool:
    if WHICH == "filesystem":
        return Path("b.txt").exists()
    return "A  a.txt" in subprocess.run(["git", "status", "--short"], capture_output=True, text=True).stdout


async def refused(client: Client, tool: str, arguments: dict) -> MCPError:
    try:
        await client.call_tool(tool, arguments)
    except MCPError as error:
        return error
    raise AssertionError(f"{tool} was called")


async def works(client: Client) -> None:
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert READ[0] in names, names
    assert [name for name in HIDDEN if name in names] == ([] if RESTRICTED else HIDDEN), names
    assert READ[2] in text(await client.call_tool(*READ[:2]))

    if RESTRICTED:
        hidden = await refused(client, *CHANGE)
        unknown = await refused(client, "no_such_tool", {})
        assert hidden.error.code == unknown.error.code, (hidden, unknown)
        assert hidden.error.message == unknown.error.message.replace("no_such_tool", CHANGE[0])
        assert not changed()
    else:
        assert not (await client.call_tool(*CHANGE)).is_error
        assert changed()

    # Killed in the middle of a call: it is stopped, so that the call is surely open.
    first = backend()
    os.kill(first, signal.SIGSTOP)
    errors = []

    async def call() -> None:
        errors.append(await refused(client, *READ[:2]))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await anyio.sleep(0.3)
        os.kill(first, signal.SIGKILL)
        with anyio.fail_after(5):
            while not errors:
                await anyio.sleep(0.01)
    assert "may have run" in errors[0].error.message, errors
    # The client goes on with the same session and another server.
    with anyio.fail_after(30):
        assert READ[2] in text(await client.call_tool(*READ[:2]))
    assert backend() != first
    if RESTRICTED:
        await refused(client, *CHANGE)
        assert not changed()
    assert [tool.name for tool in (await client.list_tools()).tools] == names


async def main() -> None:
    if WHICH == "git":
        subprocess.run(["git", "init", "-q"], check=True)
    where = [FOLDER] if WHICH == "filesystem" else ["--repository", FOLDER]
    flags = {
        "everything": [],
        "restricted": ["--hide", ",".join(HIDDEN)],
        "orchestrator": ["--policy", policy(), "--role", "orchestrator"],
        "worker": ["--policy", policy(), "--role", "worker"],
    }[ROLE]
    arguments = ["wrap", "--reconnect-limit", "30", *flags, "--", *BACKEND, *where]
    async with Client(StdioServerParameters(command=PROXY, args=arguments, cwd="."), mode=MODE) as client:
        await works(client)
        ending = time.monotonic()
    assert time.monotonic() - ending < 3, "the proxy does not end with its client"
    print("all of it holds")


anyio.run(main)
