"""Drives the server with the official `mcp` package: python client.py SERVER MODE SECONDS.

SECONDS is what to give `sleep`, so that the caller can find what was left running.
"""

import sys
import time

import anyio
from everyday import running, until, works
from mcp import StdioServerParameters
from mcp.client import Client

SERVER, MODE, SECONDS = sys.argv[1:]


async def main() -> None:
    started = time.monotonic()
    async with Client(StdioServerParameters(command=SERVER, cwd="."), mode=MODE) as client:
        await works(client, MODE, SECONDS)
        ending = time.monotonic()
    assert time.monotonic() - ending < 2, "the server does not end with its client"
    await until("what was left running ends", lambda: not running(SECONDS))
    assert time.monotonic() - started < 60
    print("all of it holds")


anyio.run(main)
