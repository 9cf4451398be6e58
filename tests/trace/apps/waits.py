"""One thread works, and four wait in different ways."""
import queue
import socket
import threading
import time


def wait_for_event():
    threading.Event().wait()


def wait_for_peer():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    listener.accept()


def wait_in_queue():
    queue.Queue().get()


def take_naps():
    while True:
        time.sleep(0.05)


def burn_the_processor():
    total = 0
    while True:
        for i in range(1000):
            total += i * i


for function in (wait_for_event, wait_for_peer, wait_in_queue, take_naps):
    threading.Thread(target=function, name=function.__name__, daemon=True).start()
print("ready 1", flush=True)
burn_the_processor()
