# remote_shards_test.py PROGRAM PHOTOS: the example trains on shards of a web server, and is killed.
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

import killing
from web_store import WebStore

PROGRAM, PHOTOS = sys.argv[1], pathlib.Path(sys.argv[2])
SHARDS = 6
SAMPLES = 40


def shard(number):
    photos = sorted(PHOTOS.rglob("*.jpg"))
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as archive:
        for i in range(SAMPLES):
            for name, content in ((f"{i:03}.jpg", photos[(number + i) % len(photos)].read_bytes()),
                                  (f"{i:03}.cls", str(i % 10).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return memory.getvalue()


class RemoteShards(unittest.TestCase):
    def setUp(self):
        self.store = WebStore({f"/train-{i:03}.tar": shard(i) for i in range(SHARDS)})
        self.addCleanup(self.store.close)
        cache = tempfile.TemporaryDirectory()
        self.addCleanup(cache.cleanup)
        self.cache = pathlib.Path(cache.name) / "cache"

    def command(self, directory):
        shards = f"{self.store.url}/train-{{000..{SHARDS - 1:03}}}.tar"
        return [PROGRAM, shards, str(self.cache), f"{directory}/checkpoint", f"{directory}/log"]

    def start(self, directory):
        return subprocess.Popen(self.command(directory), stdout=subprocess.DEVNULL)

    def run_once(self):
        with tempfile.TemporaryDirectory() as directory:
            ended = subprocess.run(self.command(directory), capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            return ended.stdout, (pathlib.Path(directory) / "log").read_text()

    def test_every_sample_comes_once_in_an_epoch_and_every_shard_once_from_the_server(self):
        said, log = self.run_once()
        bodies = sum(map(len, self.store.objects.values()))
        self.assertEqual(self.store.bytes_of_parts, bodies)
        self.assertLessEqual(self.store.wholes, 2)  # they say that shards are long, and are left
        self.assertIn("hits", said)
        seen = sorted(each for each in log.split() if each)
        wanted = [f"{self.store.url}/train-{s:03}.tar/{i:03}:{i % 10}"
                  for s in range(SHARDS) for i in range(SAMPLES)]
        self.assertEqual(seen, sorted(2 * wanted))
        self.run_once()  # another program finds them
        self.assertEqual(self.store.bytes_of_parts, bodies)

    def test_killed_at_any_step_it_ends_as_if_it_had_not_been(self):
        whole, killed, kills = killing.run_with_kills(self.start, kills=20, most_lines=4)
        self.assertEqual(kills, 20)
        self.assertEqual(killed, whole)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
