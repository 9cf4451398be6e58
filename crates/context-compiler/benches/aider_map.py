"""Prints the repository map of aider for the files of a tree: `python aider_map.py TREE TOKENS MESSAGE_FILE`.

It drives the class of the package `aider-chat` as the program does with no file in the chat: the words of the message are
the mentioned identifiers, and files whose path or stem the message has are mentioned files. No model is asked. Tokens are
counted as a quarter of the characters; the caller cuts the result by a counter of its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from aider.repomap import RepoMap


class CharacterCount:
    def token_count(self, text):
        return len(text) / 4


class SilentIo:
    def read_text(self, path, silent=False):
        return Path(path).read_text(encoding="utf-8", errors="replace")

    def tool_output(self, *_, **__):
        pass

    tool_warning = tool_error = tool_output


tree, tokens, message_file = sys.argv[1:]
message = Path(message_file).read_text(encoding="utf-8", errors="replace")
os.chdir(tree)
files = sorted(str(path) for path in Path(tree).rglob("*") if path.is_file() and ".aider" not in str(path))
words = set(re.split(r"\W+", message))
stems = {}
for name in files:
    stem = Path(name).stem.lower()
    if len(stem) >= 5:
        stems.setdefault(stem, set()).add(os.path.relpath(name, tree))
mentioned = set().union(*(stems.get(word.lower(), set()) for word in words))
mentioned |= {os.path.relpath(name, tree) for name in files if os.path.relpath(name, tree) in message}
repo_map = RepoMap(map_tokens=int(tokens), root=tree, main_model=CharacterCount(), io=SilentIo())
print(repo_map.get_ranked_tags_map([], files, int(tokens), mentioned, words) or "")
