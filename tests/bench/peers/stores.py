"""Reads objects of a web server with a peer, as net_bench does with lade: so many at a time.

S3 clients ask for path-style keys of the bucket "bucket", without signatures."""

import argparse
import asyncio
import json
import os
import subprocess
import threading
import time

import common

RANGE = 8 << 20
COUNTS = {"4k": 1000, "110k": 1000, "100m": 4, "1g": 1}
BYTES = {"4k": 4096, "110k": 110_000, "100m": 100_000_000, "1g": 1 << 30}


def requests(wanted):
    """Keys and ranges; None for a whole object."""
    size, all = wanted.size, []
    for number in range(wanted.objects):
        key = f"{size}/{number % COUNTS[size]}"
        if not wanted.ranges:
            all.append((key, None, None))
            continue
        for begin in range(0, BYTES[size], RANGE):
            all.append((key, begin, min(begin + RANGE, BYTES[size])))
    return all


def in_threads(all, depth, read):
    """Calls read(key, begin, end), which returns the number of bytes, in `depth` threads."""
    left, sizes = iter(all), []
    lock = threading.Lock()

    def work():
        total = 0
        while True:
            with lock:
                request = next(left, None)
            if request is None:
                break
            total += read(*request)
        sizes.append(total)

    threads = [threading.Thread(target=work) for _ in range(depth)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(sizes)


def with_obstore(wanted, all):
    from obstore.store import S3Store

    options = {"allow_http": True, "allow_invalid_certificates": True, "timeout": "600s"}
    store = S3Store(
        "bucket", endpoint=wanted.endpoint, region="us-east-1", skip_signature=True,
        virtual_hosted_style_request=False, client_options=options,
    )  # fmt: skip

    async def work(left):
        total = 0
        for key, begin, end in left:
            if begin is None:
                result = await store.get_async(key)
                total += len(await result.bytes_async())
            else:
                total += len(await store.get_range_async(key, start=begin, end=end))
        return total

    async def run():
        left = iter(all)
        return sum(await asyncio.gather(*(work(left) for _ in range(wanted.depth))))

    return lambda: asyncio.run(run())


def with_s3torchconnector(wanted, all):
    """The client that s3torchconnector reads with, of AWS's Common Runtime."""
    from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client

    client = MountpointS3Client(
        "us-east-1", unsigned=True, endpoint=wanted.endpoint, force_path_style=True
    )

    def read(key, begin, end):
        return sum(len(part) for part in client.get_object("bucket", key, start=begin, end=end))

    return lambda: in_threads(all, wanted.depth, read)


def with_pyarrow(wanted, all):
    from pyarrow import fs, set_io_thread_count

    scheme, _, address = wanted.endpoint.partition("://")
    store = fs.S3FileSystem(
        anonymous=True, endpoint_override=address, scheme=scheme, region="us-east-1",
        tls_ca_file_path=os.devnull if scheme == "http" else None,
    )  # fmt: skip
    set_io_thread_count(wanted.depth)

    def read(key, begin, end):
        if begin is None:
            with store.open_input_stream(f"bucket/{key}") as file:
                return len(file.read())
        with store.open_input_file(f"bucket/{key}") as file:
            return len(file.read_at(end - begin, begin))

    return lambda: in_threads(all, wanted.depth, read)


def with_boto3(wanted, all):
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    config = Config(
        signature_version=UNSIGNED, max_pool_connections=wanted.depth,
        s3={"addressing_style": "path"}, response_checksum_validation="when_required",
    )  # fmt: skip
    client = boto3.client(
        "s3", endpoint_url=wanted.endpoint, region_name="us-east-1", config=config, verify=False
    )

    def read(key, begin, end):
        part = {} if begin is None else {"Range": f"bytes={begin}-{end - 1}"}
        return len(client.get_object(Bucket="bucket", Key=key, **part)["Body"].read())

    return lambda: in_threads(all, wanted.depth, read)


def with_curl(wanted, all):
    size = wanted.size
    passes = (len(all) + COUNTS[size] - 1) // COUNTS[size]
    last = min(COUNTS[size], len(all)) - 1
    url = f"{wanted.endpoint}/bucket/{size}/[0-{last}]?[1-{passes}]"
    command = ["curl", "-s", "--no-progress-meter", "-k", "-Z", "--parallel-immediate", "--parallel-max",
               str(wanted.depth), "-o", "/dev/null", url]  # fmt: skip

    def run():
        subprocess.run(command, check=True)
        return len(all) * BYTES[size]

    return run


CLIENTS = {
    "obstore": with_obstore,
    "s3torchconnector": with_s3torchconnector,
    "pyarrow": with_pyarrow,
    "boto3": with_boto3,
    "curl": with_curl,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=CLIENTS, required=True)
    parser.add_argument("--endpoint", required=True, help="http://127.0.0.1:8080")
    parser.add_argument("--size", choices=COUNTS, default="110k", help="of the objects")
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=8, help="requests at a time")
    parser.add_argument("--ranges", action="store_true", help="by ranges of 8 MiB")
    wanted = parser.parse_args()
    all = requests(wanted)
    try:
        run = CLIENTS[wanted.client](wanted, all)
    except ImportError:
        common.not_installed(wanted.client)
    wall, cpu = time.perf_counter(), common.cpu_seconds()
    size = run()
    wall, cpu = time.perf_counter() - wall, common.cpu_seconds() - cpu
    assert size == wanted.objects * BYTES[wanted.size], size
    fields = {
        "program": wanted.client,
        "size": wanted.size,
        "depth": wanted.depth,
        "objects": wanted.objects,
        "bytes": size,
        "wall_s": wall,
        "cpu_s": cpu,
        "objects_per_s": wanted.objects / wall,
        "mb_per_s": size / wall / 1e6,
        "cpu_us_per_object": cpu / wanted.objects * 1e6,
    }
    print(json.dumps(fields), flush=True)
    os._exit(0)  # threads of some clients never end


if __name__ == "__main__":
    main()
