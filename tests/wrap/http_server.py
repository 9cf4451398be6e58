"""A Streamable HTTP server that can misbehave; prints its port. Session ids in the `initialize` era."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "secret", "answer", "headers")]
sessions = set()
seen = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        sessions.discard(self.headers["Mcp-Session-Id"])
        seen.append("DELETE")
        self.reply(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        method, params = message["method"], message.get("params") or {}
        seen.append(method)
        modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
        assert "application/json" in self.headers["Accept"] and "text/event-stream" in self.headers["Accept"]
        if self.path == "/elsewhere":
            seen.append("LEAK")
        if modern:
            assert self.headers["Mcp-Method"] == method, self.headers
            assert self.headers["Mcp-Protocol-Version"] == "2026-07-28"
            if method == "tools/call":
                assert self.headers["Mcp-Name"] == params["name"]
        elif method == "initialize":
            sessions.add(f"session-{len(seen)}")
        elif self.headers["Mcp-Session-Id"] not in sessions:
            return self.reply(404)
        else:
            assert self.headers["Mcp-Protocol-Version"] == "2025-11-25", self.headers
        if "id" not in message:
            return self.reply(202)
        result = {}
        if method == "initialize":
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "http", "version": "1"}}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            return self.reply(200, json.dumps(answer).encode(), Content_Type="application/json",
                              Mcp_Session_Id=f"session-{len(seen)}")
        if method == "tools/list":
            result = {"tools": TOOLS}
        if method == "tools/call":
            name, arguments = params["name"], params.get("arguments", {})
            text = json.dumps(arguments)
            if name == "headers":
                text = json.dumps({"seen": seen, "headers": {k.lower(): v for k, v in self.headers.items()}})
            result = {"content": [{"type": "text", "text": text}]}
            if name == "answer":
                return self.misbehave(message["id"], arguments["kind"])
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, indent=1)
        self.reply(200, answer.encode(), Content_Type="Application/JSON ; charset=utf-8")

    def misbehave(self, id, kind):
        good = '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"good"}]}}' % id
        leak = good.replace("good", "LEAK")
        note = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"LEAK"}}'
        sse = {"Content_Type": "text/event-stream"}
        if kind == "redirect":
            return self.reply(307, leak.encode(), Location="/elsewhere", Content_Type="application/json")
        if kind == "status":
            return self.reply(500, leak.encode(), Content_Type="application/json")
        if kind == "gzip":
            return self.reply(200, leak.encode(), Content_Type="application/json", Content_Encoding="gzip")
        if kind == "text":
            return self.reply(200, leak.encode(), Content_Type="text/plain")
        if kind == "empty":
            return self.reply(202)
        if kind == "forget":
            sessions.clear()
            return self.reply(404)
        if kind == "batch":
            return self.reply(200, ("[%s]" % leak).encode(), Content_Type="application/json")
        if kind == "two-lines":
            body = "data: " + good.replace(',"result"', '\ndata: ,"result"') + "\n\n"
        elif kind == "returns":
            body = ": hello\r\revent: message\rdata: " + good + "\r\r"
        elif kind == "201":
            return self.reply(201, ("data:%s\n\n" % good).encode(), **sse)
        elif kind == "two-messages":
            body = "data: " + leak + "\ndata: " + note + "\n\n"
        elif kind == "other-event":
            body = "event: LEAK\ndata: " + leak + "\n\n"
        elif kind == "cut":
            body = "data: " + leak
        else:
            raise AssertionError(kind)
        self.reply(200, body.encode(), **sse)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)
