"""Drives the server over HTTP with the official `mcp` package: python http_client.py URL TOKEN MODE SECONDS.

SECONDS is what to give `sleep`, so that the caller can find what was left running.
"""

import sys
import time

import anyio
from everyday import running, until, works
from mcp.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

URL, TOKEN, MODE, SECONDS = sys.argv[1:]


async def main() -> None:
    started = time.monotonic()
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode=MODE) as client:
            await works(client, MODE, SECONDS)
            # What runs in the background is its caller's, and not the connection's.
            listed = await client.call_tool("list_commands", {})
            ids = [c["id"] for c in listed.structured_content["commands"] if c["state"] == "running"]
        async with Client(streamable_http_client(URL, http_client=http), mode=MODE) as client:
            assert running(SECONDS)
            for number in ids:
                assert not (await client.call_tool("stop_command", {"id": number})).is_error
    await until("what was left running ends", lambda: not running(SECONDS))
    assert time.monotonic() - started < 120
    print("all of it holds")


anyio.run(main)
