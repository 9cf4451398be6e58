"""Waits in a function that has something in its variables."""
import time


def handle(order_number, customer):
    items = ["tea", "cup"]
    big = [10**40, "..."]
    many = list(range(1000))
    print("ready", flush=True)
    while True:
        time.sleep(0.05)


CURRENCY = "EUR"
handle(4711, {"name": "ada", "password": "swordfish"})
