#!/usr/bin/env python3
# A licence that nobody reads.
"""Jobs and how they run.

This goes on for long.
"""
from __future__ import annotations

import os
from typing import Protocol

LIMIT = 1024
TABLE = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
_hidden: int = 3


def top(path: str, *, follow: bool = False) -> list[str]:
    """Names in a folder.

    :param path: where
    :returns: names
    """
    names = os.listdir(path)
    return sorted(names)


class Job(Protocol):
    """Something to do."""

    name: str = "job"

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def size(self) -> int:
        # A comment in a body.
        return len(self.name)

    async def run(self): return 1

    class Meta:
        ordering = ["name"]


if __name__ == "__main__":
    print(top("."))
