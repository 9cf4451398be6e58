"""A far end of a remote that lies: python liar.py LIE LOG [MARK].

It opens the channel, answers every call with the text "honest", and lies once: at the opening, or at the first call. What it
gets goes into the file LOG, line by line, after its environment; each call is one line `call TOOL`. MARK is what its
processes sleep.
"""

import json
import os
import subprocess
import sys
import time

LIE, LOG = sys.argv[1:3]
MARK = sys.argv[3] if len(sys.argv) > 3 else "1"
GITHUB = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
FIRST = not os.path.exists(LOG)


def log(text):
    with open(LOG, "a") as file:
        file.write(text + "\n")


def raw(data):
    data = data if isinstance(data, bytes) else data.encode()
    while data:
        data = data[os.write(1, data) :]


def send(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def text(value, **more):
    return {"resultType": "complete", "content": [{"type": "text", "text": value}], "isError": False, **more}


def opened(id, version, **more):
    return {"id": id, "result": {"version": version, "system": "linux", "architecture": "x86_64", "roots": ["/"], **more}}


def open_channel(id, version):
    """Returns false if no channel is opened."""
    if LIE == "banner":
        raw("Last login: LEAK\n\n\x1b[31mLEAK\n" + json.dumps({"jsonrpc": "2.0", "id": "open-1", "result": {}}) + "\n")
        raw(b"\xff\xfe LEAK\n")
    elif LIE == "banner-without-end":
        raw("LEAK" * (1 << 20))
        raw("LEAK" * (8 << 20))
        return False
    elif LIE == "lines-without-end":
        for _ in range(200_000):
            raw("a line\n")
        return False
    elif LIE == "other-version":
        send(opened(id, "0.0.7"))
        return False
    elif LIE == "long-version":
        send(opened(id, "9" * (1 << 20)))
        return False
    elif LIE == "refusal":
        send({"id": id, "error": {"code": -32600, "message": "no: " + GITHUB + " " + "x" * (1 << 20)}})
        return False
    elif LIE == "mute":
        time.sleep(float(MARK))
        return False
    elif LIE == "gone":
        sys.stderr.write("nothing here: " + GITHUB + "\n")
        os._exit(3)
    elif LIE == "no-object":
        send({"id": id, "result": ["a list"]})
        return False
    elif LIE == "wrong-members":
        send({"id": id, "result": {"version": version, "system": ["LEAK"], "architecture": 7}})
        return False
    elif LIE == "opened-twice":
        send(opened(id, version, token="LEAK"))
    send(opened(id, version))
    return True


def answers(id):
    """The frames of a lie at a call; what they hold must not reach a client."""
    good = '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"LEAK"}]}}' % id
    result = lambda value: json.dumps({"jsonrpc": "2.0", "id": id, "result": value})
    return {
        # No message: the channel ends.
        "garbage": "LEAK is not JSON",
        "duplicate": good[:-1] + ',"result":{"LEAK":1}}',
        "escaped": good[:-1] + ',"r\\u0065sult":{"LEAK":1}}',
        "both": good[:-1] + ',"error":{"code":1,"message":"LEAK"}}',
        "bom": "\ufeff" + good,
        "utf8": good.encode()[:-3] + b'\xff"}}',
        "surrogate": good.replace("LEAK", "LEAK\\ud83d"),
        "long": good.replace("LEAK", "LEAK" + "x" * (17 << 20)),
        "deep": good.replace('"LEAK"', "[" * 500 + '"LEAK"' + "]" * 500),
        "batch": "[" + good + "]",
        "number": good.replace('"LEAK"', "1e999"),
        # A message of the wrong shape: the call fails.
        "text-for-content": result({"content": "LEAK"}),
        "no-content": result({"LEAK": 1}),
        "list-for-result": '{"jsonrpc":"2.0","id":%d,"result":["LEAK"]}' % id,
        "link": result({"content": [{"type": "resource_link", "uri": "https://LEAK", "name": "LEAK"}]}),
        "question": result({"resultType": "input_required", "inputRequests": {"a": {"method": "LEAK"}}}),
        "no-truth": result({"content": [], "isError": "LEAK"}),
        "list-for-object": result(text("LEAK", structuredContent=["LEAK"])),
        # Not an answer: dropped.
        "unasked": good.replace('"id":%d' % id, '"id":%d' % (id + 1000)),
        "string": good.replace('"id":%d' % id, '"id":"%d"' % id),
        "negative": good.replace('"id":%d' % id, '"id":-%d' % id),
        "request": '{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{"LEAK":1}}' % id,
        "roots": '{"jsonrpc":"2.0","id":7,"method":"roots/list"}',
        "notification": '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"LEAK":1}}',
        "log": '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"LEAK"}}',
        "progress-of-others": '{"jsonrpc":"2.0","method":"notifications/progress","params":'
        '{"progressToken":%d,"progress":1,"message":"LEAK"}}' % (id + 1000),
        "progress-without-text": '{"jsonrpc":"2.0","method":"notifications/progress","params":'
        '{"progressToken":%d,"progress":1e999,"message":["LEAK"]}}' % id,
    }


def call(id, params, lie):
    log("call " + params["name"])
    frames = answers(id)
    if lie in frames:
        frame = frames[lie]
        raw(frame + (b"\n" if isinstance(frame, bytes) else "\n"))
        if lie in ("unasked", "string", "negative", "request", "roots", "notification", "log") or lie.startswith("progress"):
            send({"id": id, "result": text("honest")})
    elif lie == "twice":
        send({"id": id, "result": text("honest")})
        send({"id": id, "result": text("LEAK")})
    elif lie == "secret":
        send({"id": id, "result": text("key " + GITHUB, structuredContent={"key": GITHUB})})
    elif lie == "secret-error":
        send({"id": id, "error": {"code": -32000, "message": "key " + GITHUB}})
    elif lie == "secret-progress":
        send({"method": "notifications/progress", "params": {"progressToken": id, "progress": 1, "message": GITHUB}})
        send({"id": id, "result": text("honest")})
    elif lie == "progress-flood":
        # Each in a line of its own, as fast as they are read.
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": id, "progress": 1, "message": "x" * 10_000}})
        for _ in range(20_000):
            raw(line + "\n")
        send({"id": id, "result": text("honest")})
    elif lie == "huge":
        send({"id": id, "result": text("y" * (12 << 20))})
    elif lie == "dies":
        os._exit(3)
    elif lie == "closes":
        os.close(1)
        time.sleep(float(MARK))
    elif lie == "stays":
        # Processes that the end of the channel does not end.
        subprocess.Popen(["sh", "-c", "trap '' TERM INT HUP; setsid sleep %s & sleep %s; wait" % (MARK, MARK)])
        send({"id": id, "result": text("honest")})
    else:
        send({"id": id, "result": text("honest")})


def main():
    global LIE
    if not FIRST:
        LIE = "none"
    log("environment " + json.dumps(dict(os.environ)))
    for line in sys.stdin.buffer:
        log(line.decode().rstrip("\n"))
        message = json.loads(line)
        if message.get("method") == "coretools/open":
            if not open_channel(message["id"], message["params"]["version"]):
                return
        elif message.get("method") == "tools/call":
            was, LIE = LIE, "none"
            call(message["id"], message["params"], was)
            if was == "deaf":
                time.sleep(float(MARK))
    if "stays" in sys.argv:
        time.sleep(float(MARK))


main()
