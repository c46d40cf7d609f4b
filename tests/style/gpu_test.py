# gpu_test.py ROOT: what tests/gpu.sh runs, and which gates it finds open, with programs that only
# print what the real ones print on a machine with a GPU.
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])

# The output of each benchmark where all gates are reached.
FIGURES = {
    "train_cuda": """training on NVIDIA H100 80GB HBM3
the pipeline makes a batch in 1200 us; a step takes 1443 us, 1.20 times as long
epoch 0: loss 0.5, accuracy 80.0 %, 90000 images/s, GPU idle 9.10 %
epoch 1: loss 0.3, accuracy 95.0 %, 99000 images/s, GPU idle 1.99 %
epoch 2: loss 0.2, accuracy 98.0 %, 99000 images/s, GPU idle 0.50 %
epoch 3: loss 0.1, accuracy 98.5 %, 99000 images/s, GPU idle 0.60 %
epoch 4: loss 0.1, accuracy 99.0 %, 99000 images/s, GPU idle 0.70 %
""",
    "transfer_bench": """{"batch": "f32 [256, 3, 224, 224]", "bare_gb_per_s": 50, "share": 0.950, "cpu_us_per_batch": 12.5}
{"batch": "u8 [256, 224, 224, 3]", "bare_gb_per_s": 50, "share": 0.999, "cpu_us_per_batch": 20.0}
{"batch": "u8 [256, 8]", "bare_gb_per_s": 0.1, "share": 0.411, "cpu_us_per_batch": 15.1}
""",
    "stop_copies_bench": '{"program": "stop_copies_bench", "p50_ms": 6.5, "max_ms": 99.9}\n',
    "kernels_bench": """{"figure": "copy", "gb_per_s": 3000.0, "share_of_copy": 1.000}
{"figure": "u8 hwc to f32 chw", "gb_per_s": 2700.0, "share_of_copy": 0.900}
{"figure": "crop and flip, f32", "gb_per_s": 2400.0, "share_of_copy": 0.800}
{"figure": "resize 500 x 375, f32", "gb_per_s": 2400.0, "share_of_copy": 0.801}
{"figure": "NV12 1080p resized, f16", "gb_per_s": 900.0, "share_of_copy": 0.300}
""",
    "jpeg_bench": """{"bench": "jpeg", "units": "engines", "bare_images_per_s": 9000, "ratio": 0.990}
{"bench": "jpeg", "units": "others", "bare_images_per_s": 5000, "ratio": 0.950}
""",
    "nvdec_bench": '{"bench": "nvdec_bench", "sessions": 7, "ratio": 0.981}\n',
}
GATES = ["copies to the GPU beside a bare loop, f32 [256, 3, 224, 224]: 0.950, gate >= 0.95",
         "copies to the GPU beside a bare loop, u8 [256, 224, 224, 3]: 0.999, gate >= 0.95",
         "CPU time of to_device, us a batch, f32 [256, 3, 224, 224]: 12.5, gate <= 20",
         "CPU time of to_device, us a batch, u8 [256, 224, 224, 3]: 20.0, gate <= 20",
         "CPU time of to_device, us a batch, u8 [256, 8]: 15.1, gate <= 20",
         "leaving a run with copies in flight, ms: 99.9, gate <= 100",
         "GPU idle in a training, %, epoch 1: 1.99, gate <= 2",
         "GPU idle in a training, %, epoch 2: 0.50, gate <= 2",
         "GPU idle in a training, %, epoch 3: 0.60, gate <= 2",
         "GPU idle in a training, %, epoch 4: 0.70, gate <= 2",
         "accuracy of the training, %, epoch 4: 99.0, gate >= 99",
         "fused kernel beside a copy, u8 hwc to f32 chw: 0.900, gate >= 0.8",
         "fused kernel beside a copy, crop and flip, f32: 0.800, gate >= 0.8",
         "fused kernel beside a copy, resize 500 x 375, f32: 0.801, gate >= 0.8",
         "nvJPEG beside a bare loop, engines: 0.990, gate >= 0.95",
         "nvJPEG beside a bare loop, others: 0.950, gate >= 0.95"]

# Appends how it was called to the log, prints a text, and exits.
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
cat <<'TEXT'
{text}TEXT
exit {status}
"""


class Gpu(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        (self.root / "tests").mkdir()
        shutil.copy(ROOT / "tests/gpu.sh", self.root / "tests")
        self.log = self.root / "log"
        self.log.touch()
        self.machine("python3", "torch_jpeg: No module named 'torch'\n", status=77)
        self.machine("nvidia-smi", "NVIDIA H100 80GB HBM3, 580.1, 81559 MiB\n")

    # A program of the machine, not one of those that ./dev has built.
    def machine(self, name, text="", status=0):
        self.stub(self.root / "bin" / name, text, status)

    def stub(self, path, text="", status=0):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STUB.format(text=text, status=status))
        path.chmod(0o755)

    # The programs, which print the texts, and one that exits with a status of its own. They are packed
    # as on the machine that builds them. Returns where they will be unpacked.
    def built(self, directory, programs, library=None, **statuses):
        where = self.root / "build-gpu" / directory
        with tempfile.TemporaryDirectory() as place:
            built = pathlib.Path(place)
            (built / "lib").mkdir()
            if library:
                (built / "lib" / library).touch()
            (built / "commit").write_text("0123abc\n")
            for name, text in programs.items():
                self.stub(built / "bin" / name, text, statuses.get(name, 0))
            where.parent.mkdir(exist_ok=True)
            with tarfile.open(f"{where}.tar.xz", "w:xz") as packed:
                packed.add(built, directory)
        (where / "unpacked").unlink(missing_ok=True)
        return where

    def benchmarks(self, **changed):
        programs = {name: text for name, text in FIGURES.items() if name != "nvdec_bench"}
        self.built("gpu", {**programs, **changed})

    def gpu(self, *arguments):
        environment = {**os.environ, "LOG": str(self.log), "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        result = subprocess.run([self.root / "tests/gpu.sh", *arguments], capture_output=True, text=True,
                                env=environment)
        return result.returncode, result.stdout, result.stderr

    def calls(self):
        return self.log.read_text().splitlines()

    def gates(self, output, verdict):
        return [line[6:] for line in output.splitlines() if line.startswith(verdict + "  ")]

    def test_the_output_begins_with_date_gpu_driver_and_commit(self):
        self.built("gpu", {"device_test": "", "stream_test": ""})
        status, output, _ = self.gpu("test")
        self.assertEqual(status, 0)
        self.assertRegex(output, r"^20\d\d-\d\d-\d\d \d\d:\d\d UTC\nNVIDIA H100 [^\n]*580\.1[^\n]*\n"
                         "commit 0123abc\n=== device_test\n=== stream_test\n$")

    def test_a_test_that_fails_fails_the_part_and_one_that_is_skipped_does_not(self):
        self.built("gpu", {"device_test": "", "kernel_test": ""}, kernel_test=77)
        self.assertEqual(self.gpu("test")[0], 0)
        self.built("gpu", {"device_test": "", "stream_test": ""}, stream_test=1)
        status, output, _ = self.gpu("test")
        self.assertEqual(status, 1)
        self.assertIn("failed: stream_test\n", output)

    def test_leaks_are_looked_for_by_the_tool_that_finds_them(self):
        where = self.built("gpu", {"device_test": ""})
        self.machine("compute-sanitizer")
        for tool, options in ("memcheck", " --leak-check full"), ("racecheck", ""):
            self.assertEqual(self.gpu(tool)[0], 0)
            self.assertEqual(self.calls()[-1], f"compute-sanitizer --tool {tool}{options} --error-exitcode 1 "
                             f"{where}/bin/device_test --gtest_filter=Gpu*:*/Gpu*")
        self.machine("compute-sanitizer", status=1)
        self.assertEqual(self.gpu("memcheck")[0], 1)

    def test_it_tells_what_is_there(self):
        where = self.built("gpu", {}, library="libnvjpeg.so.13")
        self.machine("nvcc", "Cuda compilation tools, release 13.0, V13.0.88\n")
        self.machine("compute-sanitizer")
        self.machine("python3", "torch: 2.15 True\n")
        status, output, _ = self.gpu("about")
        self.assertEqual(status, 0)
        self.assertIn(f"\nlibnvjpeg.so: {where}/lib/libnvjpeg.so.13\n", output)
        self.assertIn("\nnvcc: Cuda compilation tools, release 13.0, V13.0.88\n", output)
        self.assertIn(f"\ncompute-sanitizer: {self.root}/bin/compute-sanitizer\n", output)
        self.assertIn("\ntorch: 2.15 True\n", output)

    def test_figures_that_reach_their_gates_pass(self):
        self.benchmarks()
        status, output, _ = self.gpu("bench")
        self.assertEqual((status, self.gates(output, "FAIL")), (0, []), output)
        self.assertEqual(self.gates(output, "PASS"), GATES)
        self.assertIn("train_cuda --device 0 --epochs 5 --draws 20 --step-ratio 1.2", self.calls())

    def test_each_figure_that_does_not_reach_its_gate_fails(self):
        for program, good, bad in [("transfer_bench", '"share": 0.950', '"share": 0.949'),
                                   ("transfer_bench", "15.1}", "20.1}"),
                                   ("stop_copies_bench", "99.9", "100.1"),
                                   ("train_cuda", "1.99 %", "2.01 %"),
                                   ("train_cuda", "99.0 %", "10.0 %"),
                                   ("train_cuda", "99.0 %", "nan %"),
                                   ("kernels_bench", "0.801", "0.799"),
                                   ("jpeg_bench", "0.990", "0.949"),
                                   ("jpeg_bench", "0.990", "nan"),
                                   ("jpeg_bench", FIGURES["jpeg_bench"], "no GPU\n")]:
            self.benchmarks(**{program: FIGURES[program].replace(good, bad)})
            status, output, _ = self.gpu("bench")
            self.assertEqual((status, len(self.gates(output, "FAIL"))), (1, 1), output)
            self.assertIn("failed: gate: ", output)

    def test_the_decoder_of_torchvision_runs_beside_the_benchmarks(self):
        self.benchmarks()
        self.machine("python3", '{"bench": "torch_jpeg", "images_per_s": 4000}\n')
        status, output, _ = self.gpu("bench")
        self.assertEqual(status, 0)
        self.assertIn('\n=== torch_jpeg\n{"bench": "torch_jpeg", "images_per_s": 4000}\n', output)
        self.assertIn(f"python3 {self.root}/tests/bench/torch_jpeg.py", self.calls())
        self.machine("python3", status=1)
        status, output, _ = self.gpu("bench")
        self.assertEqual(status, 1)
        self.assertIn("failed: torch_jpeg\n", output)

    def test_a_benchmark_that_is_missing_or_ends_early_fails(self):
        programs = {name: text for name, text in FIGURES.items() if name != "nvdec_bench"}
        self.built("gpu", programs, jpeg_bench=1)
        status, output, _ = self.gpu("bench")
        self.assertEqual((status, self.gates(output, "FAIL")), (1, []))
        self.assertIn("failed: jpeg_bench\n", output)
        del programs["jpeg_bench"]
        self.built("gpu", programs)
        status, output, _ = self.gpu("bench")
        self.assertEqual(status, 1)
        self.assertEqual(self.gates(output, "FAIL"), ["nvJPEG beside a bare loop: no figure, gate >= 0.95"])

    IMAGES = "GPU            {} by JPEG engines, 0 by its other units, {} by the CPU\n"

    def video(self, ratio="0.981", by_cpu=0, images=IMAGES.format("1,200", 0)):
        loaded = f"GPU            {32 - by_cpu} by NVDEC, {by_cpu} by the CPU\n"
        return self.built("video", {"surfaces_test": "", "video_loader": loaded, "image_loader": images,
                                    "nvdec_bench": FIGURES["nvdec_bench"].replace("0.981", ratio)})

    def test_programs_for_video_are_run(self):
        where = self.video()
        for _ in range(2):
            status, output, errors = self.gpu("video")
            self.assertEqual((status, errors), (0, ""), output)
            self.assertEqual(self.gates(output, "PASS"), [
                "clips of the loader that the CPU decodes: 0, gate <= 0",
                "images of the loader that the CPU decodes: 0, gate <= 0",
                "NVDEC beside a bare loop: 0.981, gate >= 0.95"])
            self.assertEqual([call.split()[0] for call in self.calls()][-6:],
                             ["nvidia-smi", "surfaces_test", "video_loader", "image_loader", "nvdec_bench",
                              "python3"])
            self.assertEqual(self.calls()[-2:], [
                f"nvdec_bench --dir {where}/clips",
                f"python3 {self.root}/tests/bench/torch_video.py --dir {where}/clips --threads 7"])

    def test_the_decoder_of_torchcodec_runs_beside_the_programs_for_video(self):
        self.video()
        self.machine("python3", '{"bench": "torch_video", "frames_s": 4000.0}\n')
        status, output, _ = self.gpu("video")
        self.assertEqual(status, 0)
        self.assertIn('\n=== torch_video\n{"bench": "torch_video", "frames_s": 4000.0}\n', output)
        self.machine("python3", status=1)
        status, output, _ = self.gpu("video")
        self.assertEqual(status, 1)
        self.assertIn("failed: torch_video\n", output)

    # torch_video.py with packages that hold these lines.
    def torch_video(self, torch, decoders):
        packages = self.root / "packages"
        (packages / "torchcodec").mkdir(parents=True, exist_ok=True)
        (packages / "torch.py").write_text("__version__ = '2.15'\n" + torch)
        (packages / "torchcodec/__init__.py").write_text("__version__ = '0.17'\n")
        (packages / "torchcodec/decoders.py").write_text(decoders)
        clips = self.root / "clips"
        clips.mkdir(exist_ok=True)
        for name in "ab":
            (clips / name).write_text("video " + name)
        result = subprocess.run(
            [sys.executable, "-B", ROOT / "tests/bench/torch_video.py", "--dir", clips, "--threads", "2"],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(packages)})
        return result.returncode, result.stdout

    def test_all_frames_that_torchcodec_decodes_are_counted(self):
        torch = '''
class cuda:
    def is_available(): return %s
    def synchronize(): pass
'''
        decoders = '''
from types import SimpleNamespace
class VideoDecoder:
    def __init__(self, source, device, seek_mode):
        if device != "cuda": raise ValueError(device)
        self.cpu_fallback = source == b"video b"
    def __len__(self): return 60
    def get_frames_in_range(self, start, stop): return SimpleNamespace(data=range(start, stop))
'''
        status, output = self.torch_video(torch % True, decoders)
        figures = json.loads(output)
        self.assertEqual((status, figures["threads"], figures["videos_by_cpu"]), (0, 2, 1))
        self.assertGreater(figures["frames_s"], 0)
        self.assertEqual(self.torch_video(torch % False, decoders), (77, "torch_video: torch has no GPU\n"))
        self.assertEqual(self.torch_video(torch % True, "raise RuntimeError('no FFmpeg')"),
                         (77, "torch_video: no FFmpeg\n"))
        no_cuda = decoders.replace("if device", "raise RuntimeError('no CUDA')\n        if device")
        self.assertEqual(self.torch_video(torch % True, no_cuda), (77, "torch_video: no CUDA\n"))

    # What two processes of the bare loop do in 4 s, lade does in as many seconds as its rate says.
    def cores(self, images_per_s):
        self.machine("nproc", "2\n")
        ours = '{"program": "loader_bench", "images_per_s": %s, "images_per_cpu_s": 9999}\n' % images_per_s
        where = self.built("video", {"make_corpus": "", "loader_bench": ours,
                                     "bare_loop": '{"images_per_s": 1024, "wall_s": 4.000, "cpu_s": 4}\n'})
        return where, *self.gpu("cores")

    def test_one_process_on_all_cpus_is_held_against_as_many_processes(self):
        where, status, output, _ = self.cores(2048 * 0.86)
        self.assertEqual((status, self.gates(output, "FAIL")), (0, []), output)
        self.assertEqual(self.gates(output, "PASS"),
                         ["one process on 2 CPUs beside 2 processes: 0.86, gate >= 0.85"])
        self.assertEqual(sum(call.startswith("bare_loop ") for call in self.calls()), 10)
        loads = [call for call in self.calls() if call.startswith("loader_bench ")]
        self.assertEqual(len(loads), 5)
        self.assertTrue(loads[0].endswith("--images 8192 --threads 2"), loads[0])
        self.assertEqual(self.cores(2048 * 0.84)[1], 1)

    def test_programs_are_unpacked_once_and_again_when_others_are_packed(self):
        where = self.video()
        self.gpu("video")
        (where / "bin/surfaces_test").unlink()
        self.gpu("video")
        self.assertFalse((where / "bin/surfaces_test").exists())
        os.utime(f"{where}.tar.xz", (2**32, 2**32))
        self.gpu("video")
        self.assertTrue((where / "bin/surfaces_test").exists())

    def test_a_slow_decoder_of_videos_fails(self):
        self.video(ratio="0.900")
        status, output, _ = self.gpu("video")
        self.assertEqual((status, len(self.gates(output, "FAIL"))), (1, 1))

    def test_a_loader_of_videos_that_does_not_use_the_gpu_fails(self):
        self.video(by_cpu=32)
        status, output, _ = self.gpu("video")
        self.assertEqual((status, len(self.gates(output, "FAIL"))), (1, 1))

    def test_a_loader_of_images_that_does_not_use_the_gpu_fails(self):
        for images in self.IMAGES.format(1199, 1), "GPU            no nvJPEG\n":
            self.video(images=images)
            status, output, _ = self.gpu("video")
            self.assertEqual((status, len(self.gates(output, "FAIL"))), (1, 1))
            self.assertIn("failed: gate: images of the loader that the CPU decodes\n", output)

    def test_programs_that_were_not_built_are_named(self):
        for part, command in ("test", "gpu-programs"), ("video", "gpu-video-programs"):
            status, _, errors = self.gpu(part)
            self.assertEqual(status, 1)
            self.assertIn(f"run ./dev {command} where the compilers are", errors)

    def test_a_part_that_is_not_known_shows_the_usage(self):
        for arguments in [], ["nosuch"]:
            status, _, errors = self.gpu(*arguments)
            self.assertEqual(status, 2)
            self.assertTrue(errors.startswith("gpu.sh PART: runs what"), errors)
            self.assertIn("video-memcheck", errors)
            self.assertTrue(errors.endswith("a gate fails.\n"), errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
