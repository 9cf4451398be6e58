"""Runs a command without the right to look into other processes, as containers do: the kernel says EPERM to it."""
import ctypes
import os
import platform
import struct
import sys

# ptrace, process_vm_readv, perf_event_open
SYSTEM_CALLS = {"x86_64": (101, 310, 298), "aarch64": (117, 270, 241)}[platform.machine()]
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, EPERM = 0x7FFF0000, 0x00050001

steps = [(LOAD, 0, 0, 0)]
steps += [(JUMP_IF_EQUAL, len(SYSTEM_CALLS) - i, 0, call) for i, call in enumerate(SYSTEM_CALLS)]
steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, EPERM)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter = struct.pack("@HP", len(steps), ctypes.addressof(code))

NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(SECCOMP, FILTER, filter, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
