#!/usr/bin/env python3
"""Serves moto, which imitates services of AWS, on loopback.

usage: moto_server.py DIRECTORY

Prints the port when it serves, one line, and serves until its standard input ends. Nothing is
written below DIRECTORY. Exits with 77 if moto is not installed.
"""

import logging
import sys

try:
    from moto.server import ThreadedMotoServer
except ImportError as missing:
    print(f'moto is not installed: {missing}', file=sys.stderr)
    sys.exit(77)

logging.getLogger('werkzeug').setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
while sys.stdin.buffer.read(1):
    pass
server.stop()
