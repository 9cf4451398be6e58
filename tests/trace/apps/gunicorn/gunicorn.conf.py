bind = "127.0.0.1:0"
workers = 2
timeout = 0


def when_ready(server):
    print("ready", server.LISTENERS[0].sock.getsockname()[1], flush=True)
