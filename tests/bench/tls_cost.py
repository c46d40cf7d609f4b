#!/usr/bin/env python3
"""The CPU time of requests over TLS, against that over plain HTTP and the cipher's own.

Usage: tls_cost.py BIN ROOT OBJECTS DEPTH"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def cpu_us(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[0])["cpu_us_per_object"]


def main():
    binaries, root, objects, depth = sys.argv[1:]
    server = [sys.executable, HERE / "with_server.py", "--root", root]
    read = ["--", f"{binaries}/net_bench", "--url", "@URL@", "--objects", objects,
            "--depth", depth]  # fmt: skip
    plain = cpu_us(*server, *read)
    tls = cpu_us(*server, "--tls", *read)
    cipher = cpu_us(f"{binaries}/cipher_floor", "--objects", objects)
    fields = {"program": "tls_cost", "plain_us": plain, "tls_us": tls, "cipher_us": cipher}
    print(json.dumps(fields | {"ratio": tls / (plain + cipher)}))


if __name__ == "__main__":
    main()
