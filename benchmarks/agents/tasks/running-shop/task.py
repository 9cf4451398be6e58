"""A Node.js application that runs: a wrong number in its memory, a slow function, its log and its database."""
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import time
import urllib.request
from pathlib import Path

from projects import Faults, commit

REQUESTS = "i=0; while [ $i -lt 6000 ]; do curl -s 127.0.0.1:%d/total/$((i %% 70)) >/dev/null; i=$((i+1)); sleep 0.2; done"


def unused_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def prepare(folder):
    shutil.copytree(Path(__file__).parent / "shop", folder, dirs_exist_ok=True)
    (folder / "logs").mkdir()
    (folder / "data").mkdir()
    with sqlite3.connect(folder / "data/shop.db") as database:
        database.execute("create table orders(id integer primary key, customer int, total int, at text)")
        database.execute("create table customers(id integer primary key, name text)")
        database.executemany("insert into customers values(?, ?)", [(i, f"customer {i}") for i in range(1, 61)])
        database.executemany(
            "insert into orders values(?, ?, ?, ?)",
            [(i, i % 60 + 1, i * 37 % 9000, f"2026-{10 + i % 3 // 2:02d}-{i % 22 + 1:02d}") for i in range(1, 400)])
    (folder / ".gitignore").write_text(".pid\nlogs/\ndata/\n.task/\n")
    commit(folder, "shop")
    first, second = unused_port(), unused_port()
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
             "start_new_session": True, "cwd": folder}
    shop = subprocess.Popen(["node", "--inspect=127.0.0.1:0", "server.js"], env={**os.environ, "PORT": str(first)}, **quiet)
    time.sleep(1)
    requests = subprocess.Popen(["sh", "-c", REQUESTS % first], **quiet)
    (folder / ".task").mkdir()
    (folder / ".task/processes.json").write_text(json.dumps([shop.pid, requests.pid, second]))
    return {"PORT": first, "SECOND": second}


def check(folder):
    faults = Faults()
    faults.committed(folder, 1)
    shop, requests, second = json.loads((folder / ".task/processes.json").read_text())
    try:
        answers = json.loads((folder / "answers.json").read_text())
    except (OSError, ValueError) as error:
        return Faults([f"answers.json: {error}"])
    # Two teas at 2.50, a mug at 12, a pot at 30, with ten percent off the whole.
    faults.unless(answers.get("total") == 4230, f"total is {answers.get('total')} instead of 4230")
    faults.unless(answers.get("function") == "similarity", f"function is {answers.get('function')}")
    faults.unless(answers.get("line") == 4, f"line is {answers.get('line')} instead of 4")
    faults.unless(list(answers.get("errors", {})) == ["NO_CART"] and answers["errors"]["NO_CART"] > 0,
                  f"errors are {answers.get('errors')}")
    with sqlite3.connect(folder / "data/shop.db") as database:
        right = [row[0] for row in database.execute(
            "select customer from orders where at like '2026-11-%' group by customer order by sum(total) desc limit 3")]
    faults.unless(answers.get("customers") == right, f"customers are {answers.get('customers')} instead of {right}")
    faults.command("the tests", "npm", "test", folder=folder)
    try:
        begin = time.time()
        with urllib.request.urlopen(f"http://127.0.0.1:{second}/total/42", timeout=10) as response:
            faults.unless(json.load(response)["total"] == 4230, "the fixed shop answers a wrong total")
        faults.unless(time.time() - begin < 1, "the fixed shop is slow")
    except OSError as error:
        # It may have ended with the server that the agent used.
        faults.append(f"the fixed shop on port {second}: {error}")
    return faults
