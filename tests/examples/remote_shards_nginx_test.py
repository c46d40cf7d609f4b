# remote_shards_nginx_test.py PROGRAM PHOTOS: the example trains on shards behind nginx.
import pathlib
import subprocess
import sys
import tempfile
import unittest

from remote_shards_test import SAMPLES, SHARDS, shard
from servers import Nginx

PROGRAM = sys.argv[1]
SERVER = Nginx({f"/train-{i:03}.tar": shard(i) for i in range(SHARDS)})


class RemoteShardsOfNginx(unittest.TestCase):
    def run_once(self, cache):
        with tempfile.TemporaryDirectory() as directory:
            shards = f"{SERVER.url}/train-{{000..{SHARDS - 1:03}}}.tar"
            ended = subprocess.run(
                [PROGRAM, shards, cache, f"{directory}/checkpoint", f"{directory}/log"],
                capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            return (pathlib.Path(directory) / "log").read_text().split()

    def test_every_sample_comes_once_in_an_epoch_and_then_without_the_server(self):
        wanted = sorted(2 * [f"{SERVER.url}/train-{s:03}.tar/{i:03}:{i % 10}"
                             for s in range(SHARDS) for i in range(SAMPLES)])
        with tempfile.TemporaryDirectory() as directory:
            cache = f"{directory}/cache"
            self.assertEqual(sorted(self.run_once(cache)), wanted)
            SERVER.close()
            self.assertEqual(SERVER.bytes_of_parts(), sum(len(shard(i)) for i in range(SHARDS)))
            self.assertEqual(sorted(self.run_once(cache)), wanted)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
