# remote_images_swift_test.py PROGRAM PHOTOS: the example trains on images in OpenStack Swift.
import os
import pathlib
import sys
import subprocess
import tempfile
import unittest

import killing
from remote_images_test import photos_of
from servers import Swift

PROGRAM = sys.argv[1]
OBJECTS = {name.removeprefix("/bucket/"): content
           for name, content in photos_of(classes=3, times=400).items()}
SERVER = Swift("bucket", OBJECTS)


class RemoteImagesOfSwift(unittest.TestCase):
    def start(self, directory):
        environment = dict(os.environ, AWS_ENDPOINT_URL=SERVER.url, **SERVER.keys)
        return subprocess.Popen(
            [PROGRAM, "s3://bucket/train", f"{directory}/checkpoint", f"{directory}/log"],
            env=environment)

    def test_every_image_comes_once_in_an_epoch_also_if_it_is_killed(self):
        whole, killed, kills = killing.run_with_kills(self.start, kills=50, most_lines=3)
        self.assertEqual(kills, 50)
        self.assertEqual(killed, whole)
        seen = sorted(each.strip() for each in whole.split("s3:") if each.strip())
        wanted = sorted(f"//bucket/{name}:{name.split('/')[1][-1]}" for name in OBJECTS)
        self.assertEqual(seen, sorted(2 * wanted))


if __name__ == "__main__":
    try:
        unittest.main(argv=sys.argv[:1])
    finally:
        SERVER.close()
