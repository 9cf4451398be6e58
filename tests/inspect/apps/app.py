"""Waits in a function that has something in its variables."""
import time


def handle(order_number, customer):
    items = ["tea", "cup"]
    print("ready", flush=True)
    while True:
        time.sleep(0.05)


CURRENCY = "EUR"
handle(4711, {"name": "ada", "password": "swordfish"})
