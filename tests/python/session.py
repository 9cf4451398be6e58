"""An agent of a session, as a client of the official `mcp` package: python session.py SERVER REPORT.

Starts SERVER in its own environment, as agents do, and writes to REPORT what it sees and what became of its calls.
"""

import json
import os
import sys

import anyio
from mcp import MCPError, StdioServerParameters
from mcp.client import Client

SERVER, REPORT = sys.argv[1:]
CALLS = {
    "new_session": {"command": ["true"]},
    "run_agent_command": {"command": "/next-build"},
    "send_message": {"session_id": "x", "text": "y"},
    "end_session": {"session_id": "x"},
    "resume": {},
    "pause": {},
}


async def outcome(client: Client, tool: str, arguments: dict) -> str:
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as error:
        return "no such tool" if "no tool is called" in str(error) else f"error: {error}"
    return "failed" if result.is_error else "ok"


async def main() -> None:
    parameters = StdioServerParameters(command=SERVER, args=[], env=dict(os.environ))
    async with Client(parameters) as client:
        listed = await client.list_tools()
        report = {
            "session": os.environ["CORETOOLS_SESSION_ID"],
            "tools": [tool.name for tool in listed.tools],
            "called": {tool: await outcome(client, tool, arguments) for tool, arguments in CALLS.items()},
        }
    with open(REPORT, "w", encoding="utf-8") as file:
        json.dump(report, file)


anyio.run(main)
