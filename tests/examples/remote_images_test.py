# remote_images_test.py PROGRAM PHOTOS: the example trains on images in a store, and is killed.
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import killing
from web_store import WebStore

PROGRAM, PHOTOS = sys.argv[1], pathlib.Path(sys.argv[2])


def photos_of(classes, times):
    photos = sorted(PHOTOS.rglob("*.jpg"))
    return {f"/bucket/train/class {i % classes}/{i:04}.jpg": photos[i % len(photos)].read_bytes()
            for i in range(times)}


class RemoteImages(unittest.TestCase):
    def setUp(self):
        self.store = WebStore(photos_of(classes=3, times=640))
        self.addCleanup(self.store.close)
        self.environment = dict(os.environ, AWS_ENDPOINT_URL=self.store.url, AWS_REGION="here",
                                AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")

    def start(self, directory):
        return subprocess.Popen(self.command(directory), env=self.environment)

    def command(self, directory):
        return [PROGRAM, "s3://bucket/train", f"{directory}/checkpoint", f"{directory}/log"]

    # Runs it to its end, in a directory; returns its status, its errors, and its log.
    def run_once(self):
        with tempfile.TemporaryDirectory() as directory:
            ended = subprocess.run(self.command(directory), env=self.environment,
                                   capture_output=True, text=True)
            log = pathlib.Path(directory) / "log"
            return ended.returncode, ended.stderr, log.read_text() if log.exists() else ""

    def test_killed_at_any_step_it_ends_as_if_it_had_not_been(self):
        whole, killed, kills = killing.run_with_kills(self.start, kills=50, most_lines=4)
        self.assertEqual(kills, 50)
        self.assertEqual(killed, whole)

    def test_every_image_comes_once_in_an_epoch(self):
        status, errors, log = self.run_once()
        self.assertEqual(status, 0, errors)
        names = log.split("s3:")
        seen = sorted(each.strip() for each in names if each.strip())
        wanted = sorted(f"/{name}:{name.split('/')[3][-1]}" for name in self.store.objects)
        self.assertEqual(seen, sorted(2 * wanted))

    def test_a_store_that_is_not_there_is_named(self):
        self.environment["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1"
        status, errors, _ = self.run_once()
        self.assertEqual(status, 1)
        self.assertIn("http://127.0.0.1:1/", errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
