"""Connects its standard streams to a Unix socket, until either side ends: `connect.py SOCKET`."""
import os
import socket
import sys
import threading

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])


def there():
    while data := os.read(0, 65536):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


threading.Thread(target=there, daemon=True).start()
while data := connection.recv(65536):
    while data:
        data = data[os.write(1, data):]
