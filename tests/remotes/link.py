"""A slow link that loses packets: python link.py PID NAME ADDRESS ADDRESS-THERE DELAY-MS LOSS-PERCENT CUT

It makes a device NAME in this network namespace and one in that of the process PID, and carries packets between the two,
each after the delay, but for those that are lost, and for all while the file CUT is there. A kernel with the queueing
discipline netem does the same; few that run tests have it.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

PID, NAME, ADDRESS, THERE, DELAY, LOSS, CUT = sys.argv[1:8]
TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
# The same packets are lost in each run.
chance = random.Random(1)


def device(name, address, peer):
    """Makes a device in the namespace of this thread."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "addr", "add", address, "peer", peer, "dev", name], check=True)
    subprocess.run(["ip", "link", "set", name, "up", "txqueuelen", "2000"], check=True)
    return tun


here = device(NAME, ADDRESS, THERE)
with open(f"/proc/{PID}/ns/net") as namespace:
    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
        sys.exit("no way into the namespace")
there = device(NAME, THERE, ADDRESS)
print("up", flush=True)

delay, loss = float(DELAY) / 1000, float(LOSS) / 100
waiting = []
number = 0
while True:
    timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
    for source in select.select([here, there], [], [], timeout)[0]:
        try:
            packet = os.read(source, 65536)
        except BlockingIOError:
            continue
        if chance.random() >= loss and not os.path.exists(CUT):
            number += 1
            target = there if source == here else here
            heapq.heappush(waiting, (time.monotonic() + delay, number, target, packet))
    while waiting and waiting[0][0] <= time.monotonic():
        target, packet = heapq.heappop(waiting)[2:]
        try:
            os.write(target, packet)
        except BlockingIOError:
            pass
