"""What an everyday client does, on whatever carries it."""

import subprocess
import time
from pathlib import Path

import anyio
from mcp import MCPError
from mcp.client import Client


def running(seconds: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^sleep {seconds}"], stdout=subprocess.DEVNULL).returncode == 0


async def until(what: str, condition) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, f"not within 10 s: {what}"
        await anyio.sleep(0.02)


def text(result) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


async def works(client: Client, mode: str, seconds: str) -> None:
    legacy = mode == "legacy"
    assert client.protocol_version == ("2025-11-25" if legacy else "2026-07-28"), client.protocol_version
    if mode != "2026-07-28":  # pinned, it asks nothing before the first call
        assert client.server_capabilities.tools is not None
        assert client.instructions

    # List. The client checks every structured result against the schema it was listed with.
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"read_file", "edit_file", "run_command", "start_command"} <= tools.keys(), tools.keys()
    assert tools["run_command"].output_schema["type"] == "object"

    # Text, text that changes a file, a structured report, a report of a failure, an error.
    assert text(await client.call_tool("read_file", {"path": "a.txt"})) == "hello\n"
    edits = [{"old_string": "hello", "new_string": "bye"}]
    assert "+bye" in text(await client.call_tool("edit_file", {"path": "a.txt", "edits": edits}))
    assert Path("a.txt").read_text() == "bye\n"
    result = await client.call_tool("run_command", {"command": "echo hi"})
    assert not result.is_error and result.structured_content["stdout"] == "hi\n", result
    result = await client.call_tool("run_command", {"command": ["sh", "-c", "echo no >&2; exit 3"]})
    assert result.is_error and result.structured_content["exit_code"] == 3, result
    result = await client.call_tool("read_file", {"path": "../x"})
    assert result.is_error and "outside" in text(result), result
    result = await client.call_tool("get_diagnostics", {})
    assert not result.is_error and result.structured_content["cpus"] >= 1, result
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("an unknown tool was called")
    except MCPError as error:
        assert error.error.code == (-32601 if legacy else -32602), error

    # Background.
    started = await client.call_tool("start_command", {"command": ["cat"]})
    command = started.structured_content["id"]
    await client.call_tool("write_command_input", {"id": command, "text": "echoed\n"})
    read = await client.call_tool("read_command_output", {"id": command, "wait_ms": 10000})
    assert "echoed" in text(read), read
    assert not (await client.call_tool("stop_command", {"id": command})).is_error

    # Progress.
    heard = []

    async def progress(value: float, total: float | None, message: str | None) -> None:
        heard.append((value, message))

    script = "for i in 1 2 3 4 5; do echo step $i; sleep 0.5; done"
    await client.call_tool("run_command", {"command": ["sh", "-c", script]}, progress_callback=progress)
    assert heard and heard == sorted(heard), heard
    assert all(message.startswith("step ") for _, message in heard), heard

    # A call that the client gives up is ended, with everything it started, and the connection goes on.
    tree = {"command": ["sh", "-c", f"setsid sleep {seconds} & sleep {seconds}"]}
    try:
        await client.call_tool("run_command", tree, read_timeout_seconds=1.5)
        raise AssertionError("the call should have timed out")
    except MCPError:
        pass
    await until("a call that timed out ends", lambda: not running(seconds))
    with anyio.move_on_after(1.5) as scope:
        await client.call_tool("run_command", tree)
    assert scope.cancelled_caught
    await until("a call that was cancelled ends", lambda: not running(seconds))

    # Many at once.
    answers = {}

    async def one(number: int) -> None:
        answers[number] = text(await client.call_tool("run_command", {"command": ["echo", f"n{number}."]}))

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(one, number)
    assert all(f"n{number}." in answers[number] for number in range(50)), answers

    # Left running for the end of the connection.
    await client.call_tool("start_command", {"command": ["sleep", seconds]})
    await until("a command that was started runs", lambda: running(seconds))
