# tutorial_test.py ROOT PROGRAMS CHAPTER: what a page of docs/tutorial shows of its programs in the
# directory PROGRAMS is what they print.
import functools
import http.server
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

from web_store import WebStore

ROOT, PROGRAMS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


# The commands of a page, each with what it prints.
def commands_of(page):
    text = (ROOT / "docs/tutorial" / page).read_text()
    blocks = re.findall(r"^```\n(\$ .*?)^```$", text, flags=re.M | re.S)
    return dict(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks), flags=re.M))


# The first word of each line: what is left of a table of measured times.
def first_words(text):
    return [(line.split() or [""])[0] for line in text.splitlines()]


class Chapter(unittest.TestCase):
    """Runs in a directory of its own, beside the programs, as the reader of the page does."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.directory = pathlib.Path(place.name)
        for program in PROGRAMS.iterdir():
            if os.access(program, os.X_OK) and program.is_file():
                (self.directory / program.name).symlink_to(program)
        (self.directory / "lade").symlink_to(ROOT)
        self.shown = commands_of(self.page)
        self.environment = dict(os.environ)

    def run_shown(self, command):
        self.assertIn(command, self.shown)
        done = subprocess.run(["bash", "-c", command], cwd=self.directory, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout

    def assert_as_shown(self, command):
        self.assertEqual(self.run_shown(command), self.shown[command])

    # Makes the data of a page: runs its commands that are none of its programs.
    def make_data(self, page):
        for command in commands_of(page):
            if command.startswith(("mkdir", "cp", "ffmpeg")):
                subprocess.run(["bash", "-c", command], cwd=self.directory, check=True)


class Images(Chapter):
    page = "1-images.md"

    def setUp(self):
        super().setUp()
        self.make_data("1-images.md")

    def test_a_folder_becomes_batches(self):
        self.assert_as_shown("./images photos")

    def test_labels_come_in_another_order_in_every_epoch_and_a_broken_photo_is_left_out(self):
        self.assert_as_shown("echo none > photos/things/broken.jpg")
        self.assert_as_shown("./training_images photos strip.png")
        self.assertEqual((self.directory / "strip.png").read_bytes()[1:4], b"PNG")


class CustomStage(Chapter):
    page = "2-a-custom-stage.md"

    def test_a_function_object_is_a_stage(self):
        self.assert_as_shown("./words")

    def test_a_coroutine_is_a_stage_with_a_checkpoint(self):
        self.assert_as_shown("./joined")


class Shards(Chapter):
    page = "3-remote-shards.md"

    def setUp(self):
        super().setUp()
        self.make_data("1-images.md")

    def serve(self):
        quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,),
                     {"log_message": lambda *_: None})
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(quiet, directory=self.directory))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/"

    # The command with the URL of another server.
    def at(self, url, shown):
        command = shown.replace("http://127.0.0.1:8000/", url)
        self.shown[command] = self.shown[shown]
        return command

    def test_shards_are_written_and_each_is_fetched_once(self):
        self.assert_as_shown("./write_shards photos train-")
        url = self.serve()
        first = "./shards http://127.0.0.1:8000/ 'train-{0..2}.tar' cache"
        self.assert_as_shown(self.at(url, first))
        self.assert_as_shown(self.at(url, first + "  # again"))

    def test_a_bucket_is_listed(self):
        self.run_shown("./write_shards photos train-")
        store = WebStore({f"/bucket/shards/{path.name}": path.read_bytes()
                          for path in self.directory.glob("*.tar")})
        self.addCleanup(store.close)
        self.environment.update(AWS_ENDPOINT_URL=store.url, AWS_REGION="here",
                                AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")
        self.assert_as_shown("./listed_shards s3://bucket/shards")


class Clips(Chapter):
    page = "4-clips.md"

    def setUp(self):
        super().setUp()
        self.make_data(self.page)

    def test_videos_become_clips(self):
        self.assert_as_shown("./clips videos")

    def test_a_video_has_several_clips(self):
        self.assert_as_shown("./spaced_clips videos strip.png")
        self.assertEqual((self.directory / "strip.png").read_bytes()[1:4], b"PNG")


class Ranks(Chapter):
    page = "5-several-ranks.md"

    def test_global_batches_are_the_same_with_any_number_of_ranks(self):
        one = "./ranks"
        three = "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 ./ranks; done"
        self.assert_as_shown(one)
        self.assert_as_shown(three)
        self.assertEqual(self.global_batches(three), self.global_batches(one)[:3])

    def global_batches(self, command):
        ranks = [line.split(":")[1].split(";") for line in self.shown[command].splitlines()]
        return [sorted(" ".join(step).split()) for step in zip(*ranks) if any(step)]

    def test_an_evaluation_counts_every_sample_once(self):
        self.assert_as_shown("for r in 0 1 2; do RANK=$r WORLD_SIZE=3 ./evaluation; done")


class Resume(Chapter):
    page = "6-checkpoint-and-resume.md"

    def start(self):
        return subprocess.Popen(["./resume", "checkpoint"], cwd=self.directory, text=True,
                                stdout=subprocess.PIPE)

    # Lets the program take so many steps, and kills it. Returns what it has printed by then.
    def run_until(self, steps):
        program = self.start()
        lines = [program.stdout.readline() for _ in range(1 + steps)]
        program.kill()
        lines += program.stdout.readlines()
        program.stdout.close()
        program.wait()
        return lines

    def test_a_killed_training_ends_as_if_it_had_not_been(self):
        whole = self.run_until(13)[1:]
        (self.directory / "checkpoint").unlink()
        seen = []
        for steps in 0, 3, 7, 2:
            seen += self.run_until(steps)[1:]
        begin, *rest = self.start().communicate()[0].splitlines(keepends=True)
        self.assertIn(begin, ["begin after step 5\n", "begin after step 10\n"])
        self.assertEqual(rest, whole[-len(rest):])
        self.assertLessEqual(set(seen), set(whole))

    def test_the_page_shows_a_training_that_was_killed(self):
        whole = self.run_until(13)
        self.assertEqual(self.shown["./resume other | tail -1"], whole[-1])
        killed = self.shown["timeout -s KILL 0.2 ./resume checkpoint"].splitlines(keepends=True)
        resumed = self.shown["./resume checkpoint"].splitlines(keepends=True)
        self.assertEqual(killed, whole[:len(killed)])
        self.assertEqual(resumed[0], "begin after step 5\n")
        self.assertEqual(resumed[1:], whole[6:])

    def test_another_number_of_ranks_goes_on(self):
        self.assert_as_shown("./rescale")


class Bottleneck(Chapter):
    page = "7-finding-the-bottleneck.md"

    # Measured times are others, and which stage is the slowest depends on what else is running.
    def test_figures_lead_to_a_verdict(self):
        said, shown = self.run_shown("./bottleneck"), self.shown["./bottleneck"]
        self.assertEqual(first_words(said)[:-1], first_words(shown)[:-1])
        self.assertEqual(said.splitlines()[:4], shown.splitlines()[:4])
        self.assertRegex(said.splitlines()[-1], r"^\w.*\.$")

    def test_a_profile_has_every_stage(self):
        for text in self.run_shown("./profiled"), self.shown["./profiled"]:
            lines = text.splitlines()
            stages = [line.split()[0] for line in lines[1:-1] if not line.startswith(" ")]
            self.assertEqual(stages, ["source", "fetch", "decode", "batch"])
            self.assertRegex(lines[-1], r"^\w+ is the slowest")

    def test_a_run_reports_and_is_recorded(self):
        said = self.run_shown("./watched 2>&1 | cat")
        self.assertRegex(said.splitlines()[-1], r"^lade: \d+:\d\d  50 items ")
        self.assertIn("train", (self.directory / "bottleneck.trace.json").read_text())

    def test_a_stage_finds_its_concurrency(self):
        for text in self.run_shown("./tuned"), self.shown["./tuned"]:
            self.assertRegex(text, r"^fetch: \{\.concurrency = \d+, \.buffer = \d+\}\n\w.*\.$")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], sys.argv[3].title().replace("_", "")])
