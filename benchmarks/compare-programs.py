#!/usr/bin/env python3
"""Two builds of mcp-stdio beside each other, in turns, so that what else the machine does meets both.

    benchmarks/compare-programs.py target/dist/mcp-stdio target/x86_64-unknown-linux-musl/dist/mcp-stdio
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

TURNS, READS, IN_FLIGHT = 30, 300, 32


class Server:
    def __init__(self, program, folder):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CORETOOLS_")}
        pipe = subprocess.PIPE
        self.child = subprocess.Popen([program], stdin=pipe, stdout=pipe, cwd=folder, env=environment)
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.send(0, "initialize", client)
        self.answer()
        self.child.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def send(self, number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.child.stdin.write(json.dumps(message).encode() + b"\n")

    def answer(self):
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def read(self, number, path):
        self.send(number, "tools/call", {"name": "read_file", "arguments": {"path": path}})

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def turn(program, folder):
    """Milliseconds to tools/list, MB resident then, microseconds of one read, reads a second with 32 in flight,
    milliseconds of a search through 2,000 files."""
    started = time.perf_counter()
    server = Server(program, folder)
    server.send(1, "tools/list", {})
    server.answer()
    start = (time.perf_counter() - started) * 1e3
    status = Path(f"/proc/{server.child.pid}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
    reads = []
    for number in range(READS):
        began = time.perf_counter()
        server.read(number, "small.txt")
        assert not server.answer()["result"]["isError"]
        reads.append((time.perf_counter() - began) * 1e6)
    began = time.perf_counter()
    for _ in range(READS // IN_FLIGHT):
        for number in range(IN_FLIGHT):
            server.read(number, "small.txt")
        for _ in range(IN_FLIGHT):
            server.answer()
    flight = READS // IN_FLIGHT * IN_FLIGHT / (time.perf_counter() - began)
    began = time.perf_counter()
    server.send(1, "tools/call", {"name": "search_files", "arguments": {"pattern": "needle", "path": "tree"}})
    assert not server.answer()["result"]["isError"]
    search = (time.perf_counter() - began) * 1e3
    server.end()
    return start, memory, median(reads), flight, search


def main():
    programs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "small.txt").write_text("0123456789abcdef0123456789abcde\n" * 34)
        for number in range(2000):
            path = Path(folder, f"tree/{number % 50}/{number}.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("a line of no interest\n" * 20 + ("needle\n" if number % 400 == 0 else ""))
        turns = {program: [] for program in programs}
        for _ in range(TURNS):
            for program in programs:
                turns[program].append(turn(os.path.abspath(program), folder))
    print("| program, best turns | bytes | start to tools/list | memory then | read of 1 KB | reads, 32 in flight | search, 2,000 files |")
    print("|---|---|---|---|---|---|---|")
    for program, taken in turns.items():
        # The best turn: what else the machine does only slows.
        start, memory, read, flight, search = (best(c) for best, c in zip((min, min, min, max, min), zip(*taken)))
        print(
            f"| {program} | {os.path.getsize(program):,} | {start:.2f} ms | {memory:.1f} MB | {read:.0f} µs "
            f"| {flight:,.0f}/s | {search:.1f} ms |"
        )


if __name__ == "__main__":
    main()
