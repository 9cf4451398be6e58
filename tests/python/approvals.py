"""A client whose user approves calls, with the official `mcp` package:
python approvals.py MODE stdio SERVER ARGUMENT... | http URL TOKEN
"""

import sys
import uuid
from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

MODE, TRANSPORT, TARGET, *REST = sys.argv[1:]
decisions: list[str] = []
asked: list[str] = []
# A server without sessions knows the calls of an earlier run.
RUN = uuid.uuid4().hex


async def elicit(_context, params) -> types.ElicitResult:
    asked.append(params.message)
    decision = decisions.pop(0)
    if decision in ("decline", "cancel"):
        return types.ElicitResult(action=decision)
    return types.ElicitResult(action="accept", content={"decision": decision, "reason": "not today"})


@asynccontextmanager
async def connect():
    if TRANSPORT == "stdio":
        server = StdioServerParameters(command=TARGET, args=REST)
        async with Client(server, mode=MODE, elicitation_callback=elicit) as client:
            yield client
        return
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {REST[0]}"}) as http:
        transport = streamable_http_client(TARGET, http_client=http)
        async with Client(transport, mode=MODE, elicitation_callback=elicit) as client:
            yield client


async def main() -> None:
    async with connect() as client:

        async def call(word: str, *answers: str) -> tuple[bool, str]:
            decisions[:] = answers
            result = await client.call_tool("run_command", {"command": f"echo {word} {RUN}"})
            assert not decisions, (word, decisions)
            return bool(result.is_error), "".join(block.text for block in result.content)

        failed, text = await call("first", "allow once")
        assert not failed and "first" in text, text
        assert asked[-1].startswith("An agent in the role builder asks to call run_command."), asked[-1]
        assert f'    command: "echo first {RUN}"\n' in asked[-1], asked[-1]
        # Once is once.
        failed, text = await call("first", "deny")
        assert failed and "denied this call, because: not today" in text, text
        for no in ("decline", "cancel", "nonsense"):
            failed, text = await call("third", no)
            assert failed and "not run" in text, text
        # For the session: the same call, and no other.
        assert not (await call("fourth", "allow for this session"))[0]
        assert not (await call("fourth"))[0]
        assert not (await call("fifth", "allow once"))[0]
        # The calls of one call are asked about one by one.
        decisions[:] = ["allow once", "deny"]
        calls = [{"tool": "run_command", "arguments": {"command": f"echo {word}"}} for word in ("six", "seven")]
        result = await client.call_tool("call_tools", {"calls": calls})
        text = "".join(block.text for block in result.content)
        assert result.is_error and "six\n" in text and "2. run_command: failed" in text, text
        # What asks nobody is not slowed down, and an asked tool is listed.
        assert not decisions and not (await client.call_tool("run_command", {"command": "true"})).is_error
        assert "run_command" in [tool.name for tool in (await client.list_tools()).tools]
    print("all of it holds")


anyio.run(main)
