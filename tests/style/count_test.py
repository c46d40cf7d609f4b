# count_test.py ROOT: .ci/count.py on small reports.
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv[1]) / ".ci/count.py"

PASSED = '<testcase classname="Map" name="Works" status="run"/>'
FAILED = '<testcase classname="Map" name="Fails"><failure message="why">more</failure></testcase>'
BROKEN = '<testcase classname="Map" name="Hangs"><error/></testcase>'
SKIPPED = '<testcase classname="Wide/Kernels.Pixels" name="Avx512"><skipped message="why"/></testcase>'
NOT_RUN = '<testcase classname="Map" name="DISABLED_Works" status="notrun"/>'


class Count(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def count(self, *reports, skips="", command="test"):
        """What is printed for the reports, each with such cases, of a command."""
        (self.directory / "skips").write_text(skips)
        paths = []
        for i, cases in enumerate(reports):
            paths.append(self.directory / f"{i}.junit.xml")
            paths[-1].write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
        words = [sys.executable, PROGRAM, self.directory / "skips", command, *paths]
        return subprocess.run(words, capture_output=True, text=True)

    def assert_counts(self, counts, *reports, **how):
        result = self.count(*reports, **how)
        self.assertEqual((result.returncode, result.stdout), (0, counts + "\n"), result.stderr)
        return result.stderr

    def test_cases_of_all_reports_are_added(self):
        self.assert_counts("3 2 0", PASSED + FAILED, BROKEN + PASSED, PASSED)

    def test_nothing_is_nothing(self):
        self.assert_counts("0 0 0")
        self.assert_counts("0 0 0", "")

    def test_a_case_that_is_skipped_and_not_listed_has_failed(self):
        errors = self.assert_counts("1 1 0", PASSED + SKIPPED, skips="Other.Case *  # why\n")
        self.assertIn("not listed", errors)
        self.assertIn("Wide/Kernels.Pixels.Avx512", errors)

    def test_a_case_that_has_not_run_is_skipped(self):
        self.assert_counts("0 1 0", NOT_RUN)
        self.assert_counts("0 0 1", NOT_RUN, skips="Map.DISABLED_* *")

    def test_a_case_that_is_listed_may_be_skipped(self):
        skips = "# why\n\nWide/Kernels.*Avx512  *  # the processor may lack it\n"
        self.assertEqual(self.assert_counts("1 0 1", PASSED + SKIPPED, skips=skips), "")

    def test_a_case_may_be_skipped_under_the_commands_of_its_line_alone(self):
        skips = "Map.DISABLED_* bare\nWide/* asan t?an  # why\n"
        for command in "asan", "tsan":
            self.assert_counts("1 0 1", PASSED + SKIPPED, skips=skips, command=command)
        for command in "test", "fallback", "bare", "clang":
            errors = self.assert_counts("1 1 0", PASSED + SKIPPED, skips=skips, command=command)
            self.assertIn(f"not listed in {self.directory}/skips for {command}: Wide/", errors)

    def test_a_line_without_a_command_is_an_error(self):
        result = self.count(PASSED, skips="Map.Works  # why\n")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("no command for Map.Works", result.stderr)

    def test_a_listed_case_that_fails_has_failed(self):
        self.assert_counts("0 1 0", FAILED, skips="Map.* *")

    def test_a_comment_alone_allows_nothing(self):
        self.assert_counts("0 1 0", SKIPPED, skips="# Wide/Kernels.Pixels.Avx512 *\n")

    def test_a_report_that_cannot_be_read_is_a_failure(self):
        self.assertNotEqual(self.count(PASSED + "<testcase").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
