# dev_test.py ROOT: which tests `./dev test` runs, and that it fails if there are none; how `./dev
# fuzz` and `./dev tidy` run side by side. Meson only pretends to run and to build them.
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])

# Lists two tests, or writes a report with the cases in $CASES.
MESON = """#!/bin/sh
echo "meson $*" >>"$LOG"
case "$*" in
  *--list*) printf 'lade:core / map\\nlade:core / endless unoptimised\\n' ;;
  test*) mkdir -p "$3/meson-logs"
    [ -z "$CASES" ] || echo "<testsuite>$CASES</testsuite>" >"$3/meson-logs/testlog.junit.xml"
    exit "$STATUS" ;;
esac
"""

# Every package is installed.
DPKG_QUERY = """#!/bin/sh
echo "packages $*" >>"$LOG"
for package; do printf ' %s:installed ' "$package"; done
"""

# Knows all packages but one.
APT_GET = """#!/bin/sh
echo "apt-get $*" >>"$LOG"
case "$*" in *libtorch-dev*) exit 100 ;; esac
"""

# A fuzz target that waits until two of them run. The one in $FAILS fails.
FUZZ = """#!/bin/sh
name=$(basename "$0" _fuzz)
echo "$name $*" >>"$LOG"
touch "$0.runs"
until [ "$(ls build-fuzz/tests/fuzz/*.runs | wc -l)" -ge 2 ]; do sleep 0.01; done
echo "output of $name"
[ "$name" != "$FAILS" ]
"""

# Finds something in the file in $FAILS.
TIDY = """#!/bin/sh
echo "tidy $*" >>"$LOG"
for file; do :; done
[ "$file" != "$FAILS" ]
"""

# Counts one case that has passed, and writes down of which command.
COUNT = "import sys; print(1, 0, 0); open('command', 'w').write(sys.argv[2])"

PASSED = '<testcase classname="Map" name="Works"/>'
SKIPPED = '<testcase classname="Map" name="Works"><skipped/></testcase>'


class Dev(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        for name in ["dev", "modules.ini", "modules.py"]:
            shutil.copy(ROOT / name, self.root)
        shutil.copytree(ROOT / ".ci", self.root / ".ci")
        (self.root / "build").mkdir()
        (self.root / "build/build.ninja").touch()
        for installed in "tests/python-packages.txt", "build-python/installed":
            (self.root / installed).parent.mkdir()
            (self.root / installed).touch()
        self.program("meson", MESON)
        self.program("ninja", "#!/bin/sh\n")
        for name in ["apt-get", "dpkg-query"]:
            self.program(name, DPKG_QUERY)

    def program(self, name, text):
        path = self.root / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def dev(self, *arguments, cases=PASSED, status=0, fails=""):
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}", "CASES": cases,
                       "FAILS": fails, "LOG": f"{self.root}/log", "STATUS": str(status)}
        return subprocess.run([self.root / "dev", *arguments], capture_output=True, text=True,
                              env=environment)

    def assert_fails(self, result, why):
        self.assertEqual((result.returncode, result.stderr.splitlines()[-1]), (2, why))

    def test_tests_are_run_by_name_and_with_options(self):
        for arguments in [], ["map"], ["map", "--repeat", "3"], ["--repeat", "3", "map"], \
                ["--suite", "core"], ["--repeat=3", "-v", "map"], ["endless unoptimised"]:
            result = self.dev("test", *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            last = (self.root / "log").read_text().splitlines()[-1]
            self.assertIn(" ".join(["--print-errorlogs", *arguments]), last)

    def test_a_name_that_is_not_known_fails_wherever_it_stands(self):
        for arguments in ["nosuch"], ["map", "nosuch"], ["--repeat", "1", "nosuch"], \
                ["map", "--suite", "core", "nosuch"], ["-v", "nosuch"], ["ma"]:
            self.assert_fails(self.dev("test", *arguments), f"dev: no test '{arguments[-1]}'")

    def test_no_test_at_all_is_a_failure(self):
        self.assert_fails(self.dev("test", "--suite", "nosuch", cases=""), "dev: no test has run")
        self.assert_fails(self.dev("test", cases="<testsuite/>"), "dev: no test has run")

    def test_an_older_report_does_not_count(self):
        self.assertEqual(self.dev("test").returncode, 0)
        self.assert_fails(self.dev("test", "--suite", "nosuch", cases=""), "dev: no test has run")

    def test_a_failure_is_a_failure(self):
        for status in 1, 125:
            self.assertEqual(self.dev("test", status=status).returncode, status)

    def test_a_skipped_case_has_run(self):
        self.assertEqual(self.dev("test", cases=SKIPPED).returncode, 0)

    def test_a_named_test_whose_cases_are_all_skipped_fails(self):
        self.assert_fails(self.dev("test", "map", cases=SKIPPED), "dev: no test has run")
        self.assertEqual(self.dev("test", "map", cases=SKIPPED + PASSED).returncode, 0)

    def test_skipped_cases_are_counted_as_of_the_command(self):
        (self.root / ".ci/count.py").write_text(COUNT)
        for command in "test", "fallback":
            self.assertEqual(self.dev(command, "map").returncode, 0)
            self.assertEqual((self.root / "command").read_text(), command)

    def test_a_package_that_is_not_known_keeps_no_other_from_being_installed(self):
        self.program("dpkg-query", "#!/bin/sh\n")
        self.program("apt-get", APT_GET)
        self.program("sudo", '#!/bin/sh\nexec "$@"\n')
        result = self.dev("test")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line for line in result.stderr.splitlines() if "going on without" in line],
                         ["dev: going on without: libtorch-dev"])
        installs = [line.split() for line in (self.root / "log").read_text().splitlines()
                    if line.startswith("apt-get install")]
        self.assertTrue(any(words[-1] == "libgtest-dev" and "libtorch-dev" not in words
                            for words in installs))

    def test_benchmarks_are_compiled_with_the_packages_of_all_of_them(self):
        self.assertEqual(self.dev("bench-programs").returncode, 0)
        lines = (self.root / "log").read_text().splitlines()
        packages = [word for line in lines if line.startswith("packages") for word in line.split()]
        self.assertIn("libasio-dev", packages)
        self.assertNotIn("valgrind", packages)
        self.assertIn("./dev bench-programs", (ROOT / ".ci/run").read_text())

    def test_with_clang_also_what_compiles_on_its_own_is_run(self):
        for command, without in ("clang", ["style"]), ("asan", ["style", "consume", "slow"]):
            self.assertEqual(self.dev(command).returncode, 0)
            last = (self.root / "log").read_text().splitlines()[-1].split()
            pairs = zip(last, last[1:])
            self.assertEqual([suite for option, suite in pairs if option == "--no-suite"], without)

    def test_a_module_is_left_out_together_with_what_depends_on_it(self):
        self.assertEqual(self.dev("without", "media").returncode, 0)
        setup = [line.split() for line in (self.root / "log").read_text().splitlines()
                 if line.startswith("meson setup")][-1]
        for option in "-Dmedia=disabled", "-Dav=disabled", "-Dfilters=disabled", "-Dhttp=enabled":
            self.assertIn(option, setup)
        self.assertNotEqual(self.dev("without", "nosuch").returncode, 0)

    # Ninja knows one program, which is /bin/true and links the C library.
    def test_programs_for_a_gpu_are_copied_with_their_commit_and_their_size_is_told(self):
        self.program("ninja", """#!/bin/sh
case "$*" in *query*) printf 'gpu-programs: phony\\n  input:\\n    tests/true_test\\n' ;; esac
""")
        self.program("git", "#!/bin/sh\necho 0123abc\n")
        (self.root / "build-gpu/tests").mkdir(parents=True)
        (self.root / "build-gpu/build.ninja").touch()
        shutil.copy("/bin/true", self.root / "build-gpu/tests/true_test")
        result = self.dev("gpu-programs")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^build-gpu/gpu\.tar\.xz: \d MiB$")
        with tarfile.open(self.root / "build-gpu/gpu.tar.xz") as packed:
            self.assertEqual(sorted(packed.getnames()),
                             ["gpu", "gpu/bin", "gpu/bin/true_test", "gpu/commit", "gpu/lib"])
            self.assertEqual(packed.extractfile("gpu/commit").read(), b"0123abc\n")

    def fuzz(self, *arguments, fails):
        """The result of `./dev fuzz` and the words with which each of two targets was called."""
        self.program("nproc", "#!/bin/sh\necho 2\n")
        for name in "a", "b":
            self.program(f"../build-fuzz/tests/fuzz/{name}_fuzz", FUZZ)
        result = self.dev("fuzz", *arguments, fails=fails)
        lines = (self.root / "log").read_text().splitlines()
        return result, {line[0]: line.split() for line in lines if line[:2] in ["a ", "b "]}

    def test_fuzz_targets_run_side_by_side(self):
        result, calls = self.fuzz(fails="")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(calls), ["a", "b"])
        self.assertIn("-max_total_time=20", calls["a"])
        self.assertEqual(calls["b"][-2:], ["build-fuzz/corpus/b", "tests/fuzz/corpus/b"])
        self.assertNotIn("output of", result.stdout + result.stderr)

    def test_fuzz_targets_run_for_as_long_as_asked(self):
        _, calls = self.fuzz("3600", fails="")
        self.assertIn("-max_total_time=3600", calls["a"])

    def test_a_fuzz_target_that_fails_fails_the_command_and_shows_its_output(self):
        for fails in "a", "b":
            result, calls = self.fuzz(fails=fails)
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual(sorted(calls), ["a", "b"])
            self.assertEqual(result.stderr.splitlines(),
                             [f"output of {fails}", f"dev: fuzz target {fails} has failed"])

    def tidy(self, *arguments, fails=""):
        """The result of `./dev tidy` and the files that clang-tidy has looked at."""
        self.program("clang-tidy-19", TIDY)
        (self.root / "log").unlink(missing_ok=True)
        for path in "build.ninja", "liblade.a.p/lade-unity0.cpp", "liblade-av.a.p/lade-av-unity0.cpp":
            (self.root / "build-tidy" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / "build-tidy" / path).touch()
        result = self.dev("tidy", *arguments, fails=fails)
        lines = (self.root / "log").read_text().splitlines()
        return result, sorted(line.split()[-1] for line in lines if line.startswith("tidy "))

    def test_clang_tidy_looks_at_all_sources_of_the_library_or_at_some(self):
        for arguments, files in ([], ["build-tidy/liblade-av.a.p/lade-av-unity0.cpp",
                                      "build-tidy/liblade.a.p/lade-unity0.cpp"]), \
                (["lib/json.cpp", "io/file.cpp"], ["io/file.cpp", "lib/json.cpp"]):
            result, seen = self.tidy(*arguments)
            self.assertEqual((result.returncode, seen), (0, files), result.stderr)

    def test_a_finding_of_clang_tidy_in_any_file_is_a_failure(self):
        for fails in "lib/json.cpp", "io/file.cpp":
            result, seen = self.tidy("lib/json.cpp", "io/file.cpp", fails=fails)
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual(len(seen), 2)

    def test_lists_and_debuggers_write_no_report(self):
        for option in "--list", "--gdb":
            self.assertEqual(self.dev("test", "map", option, cases="").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
