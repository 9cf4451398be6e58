"""The worker that is asked for anything says who it is, and works until the client goes."""
import os
import time


def burn_the_processor(seconds):
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        for i in range(1000):
            total += i * i
    return total


def busy():
    yield f"{os.getpid()}\n".encode()
    while True:
        burn_the_processor(0.1)
        yield b"."


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return busy()
