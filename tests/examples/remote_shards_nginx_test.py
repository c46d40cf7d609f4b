# remote_shards_nginx_test.py PROGRAM PHOTOS: the example trains on shards behind nginx, and is killed.
import pathlib
import subprocess
import sys
import tempfile
import unittest

import killing
from remote_shards_test import SAMPLES, SHARDS, shard
from servers import Nginx

PROGRAM = sys.argv[1]


class RemoteShardsOfNginx(unittest.TestCase):
    def setUp(self):
        self.server = Nginx({f"/train-{i:03}.tar": shard(i) for i in range(SHARDS)})
        self.addCleanup(self.server.directory.cleanup)
        self.addCleanup(self.server.close)

    def command(self, directory, cache):
        shards = f"{self.server.url}/train-{{000..{SHARDS - 1:03}}}.tar"
        return [PROGRAM, shards, cache, f"{directory}/checkpoint", f"{directory}/log"]

    # With a cache of its own, so that it is killed while shards are fetched, too.
    def start(self, directory):
        return subprocess.Popen(self.command(directory, f"{directory}/cache"),
                                stdout=subprocess.DEVNULL)

    def run_once(self, cache):
        with tempfile.TemporaryDirectory() as directory:
            ended = subprocess.run(self.command(directory, cache), capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            return (pathlib.Path(directory) / "log").read_text().split()

    def wanted(self):
        return sorted(2 * [f"{self.server.url}/train-{s:03}.tar/{i:03}:{i % 10}"
                           for s in range(SHARDS) for i in range(SAMPLES)])

    def test_every_sample_comes_once_in_an_epoch_and_then_without_the_server(self):
        with tempfile.TemporaryDirectory() as cache:
            self.assertEqual(sorted(self.run_once(cache)), self.wanted())
            self.server.close()
            self.assertEqual(self.server.bytes_of_parts(), sum(len(shard(i)) for i in range(SHARDS)))
            self.assertEqual(sorted(self.run_once(cache)), self.wanted())

    def test_killed_at_any_step_it_ends_as_if_it_had_not_been(self):
        whole, killed, kills = killing.run_with_kills(self.start, kills=20, most_lines=4)
        self.assertEqual(kills, 20)
        self.assertEqual(killed, whole)
        self.assertEqual(sorted(whole.split()), self.wanted())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
