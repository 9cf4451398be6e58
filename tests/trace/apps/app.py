import socket
import sys
import threading
import time

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()


def burn_the_processor(seconds):
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        for i in range(1000):
            total += i * i
    return total


# A name that would break lines, stacks and markup.
named = ["co_name", "co_qualname"] if sys.version_info >= (3, 11) else ["co_name"]
hostile = burn_the_processor.__code__.replace(**dict.fromkeys(named, "evil;\n<b>"))
burn_hostile = type(burn_the_processor)(hostile, globals())


def serve():
    while True:
        peer, _ = listener.accept()
        while data := peer.recv(65536):
            pass


threading.Thread(target=serve, daemon=True).start()
client = socket.create_connection(listener.getsockname())
print("ready", listener.getsockname()[1], flush=True)
while True:
    burn_the_processor(0.02)
    burn_hostile(0.015)
    client.sendall(b"x" * 10_000)
    time.sleep(0.02)
