# modules_test.py ROOT: modules.py, and the tests that are fed by it, on a small tree with nested
# modules.
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(ROOT), str(ROOT / "tests/style")]
import layering_test  # noqa: E402
import lists_test  # noqa: E402
import modules  # noqa: E402

MODULES = """
[core]
description = Loading
folders = lib io
dependencies = liburing
packages = liburing-dev
link = -luring
includes =
    lib/dlpack.cpp: dlpack/*.h
    lib/*: POSIX
    io/*: POSIX liburing.h
headers =
    lade/file.hpp
    lade/io/read.hpp
    lade/lade.hpp
sources =
    io/read.cpp
    lib/dlpack.cpp
    lib/file.cpp
tests =
    common/file
    io/read

[net]
description = Pages (libnet)
folders = io/net
modules = core
dependencies = libnet>=1.2
packages = libnet-dev
test_packages = net-server
link = -lnet
includes =
    io/net/*: net.h
headers =
    lade/io/net/page.hpp
sources =
    io/net/page.cpp
tests =
    io/net/page

[cuda]
description = Kernels (CUDA)
folders = cuda
modules = core
packages = liburing-dev
link = -lcudart
includes =
    cuda/*.cu: cuda_runtime.h
headers =
    lade/cuda/kernel.hpp
sources =
    cuda/copy.cpp
    cuda/kernel.cu
"""

PAGE = """| `core` | `lade/implementation.hpp` | `-luring` | `lade` | `lade::lade` |
| `net` | `lade/io/net/implementation.hpp` | `-lnet` | `lade-net` | `lade::net` |
| `net` | `auto`, `enabled`, `disabled` | Pages (libnet) |
| `cuda` | `lade/cuda/implementation.hpp` | `-lcudart` | `lade-cuda` | `lade::cuda` |
| `cuda` | `auto`, `enabled`, `disabled` | Kernels (CUDA) |
"""

FILES = {
    "include/lade/file.hpp": "#include <vector>",
    "include/lade/io/read.hpp": "#include <lade/file.hpp>",
    "include/lade/lade.hpp": "#include <lade/io/read.hpp>",
    "include/lade/io/net/page.hpp": "#include <lade/io/read.hpp>",
    "include/lade/cuda/kernel.hpp": "",
    "lib/file.cpp": "#include <lade/file.hpp>\n#include <sys/stat.h>",
    "lib/dlpack.cpp": "#include <dlpack/dlpack.h>",
    "io/read.cpp": "#include <liburing.h>\n#include \"ring.hpp\"",
    "io/ring.hpp": "",
    "io/net/page.cpp": "#include <net.h>\n#include <lade/io/net/page.hpp>",
    "cuda/copy.cpp": "",
    "cuda/kernel.cu": "#include <cuda_runtime.h>\n#include <lade/cuda/kernel.hpp>",
    "tests/common/file_test.cpp": "",
    "tests/io/read_test.cpp": "",
    "tests/io/special_test.cpp": "",
    "tests/io/net/page_test.cpp": "",
    "tests/consume/lade.cpp": "",
    "tests/consume/lade-net.cpp": "",
    "tests/consume/lade-cuda.cpp": "",
    "tests/meson.build": "executable('special', 'io/special_test.cpp')",
    "docs/guides/integration.md": PAGE,
    "modules.ini": MODULES,
}


class Tree(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        for path, text in FILES.items():
            self.write(path, text)
        shutil.copy(ROOT / "modules.py", self.root)
        self.ask("write")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def ask(self, question):
        words = [sys.executable, "-B", self.root / "modules.py", question]
        result = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def assert_refused(self, section, why):
        self.write("modules.ini", MODULES + section)
        with self.assertRaises(SystemExit) as raised:
            modules.read(self.root)
        self.assertEqual(raised.exception.code, f"modules.ini: {why}")


class Modules(Tree):
    def test_packages_are_those_of_all_modules_each_once(self):
        self.assertEqual(self.ask("packages"), "liburing-dev libnet-dev\n")
        self.assertEqual(self.ask("test-packages"), "net-server\n")

    def test_every_optional_module_is_enabled(self):
        self.assertEqual(self.ask("options"), "-Dnet=enabled -Dcuda=enabled\n")
        self.assertEqual(self.ask("optional"), "net cuda\n")

    def test_meson_reads_fields_as_lines_of_words(self):
        lines = self.ask("meson").splitlines()
        self.assertEqual(lines[:2], ["names\tcore net cuda", "libraries\tlade lade-net lade-cuda"])
        for line in ["core.option\t", "net.option\tnet", "net.dependencies\tlibnet>=1.2",
                     "net.links\t-lnet -luring", "net.sources\tio/net/page.cpp",
                     "net.implementations\tlade/implementation.hpp lade/io/net/implementation.hpp"]:
            self.assertIn(line, lines)

    def test_implementation_headers_include_the_sources_for_cpp(self):
        text = (self.root / "include/lade/io/net/implementation.hpp").read_text()
        self.assertIn("#include \"../../../../io/net/page.cpp\"", text)
        text = (self.root / "include/lade/cuda/implementation.hpp").read_text()
        self.assertIn("#include \"../../../cuda/copy.cpp\"", text)
        self.assertNotIn("kernel", text)

    def test_implementation_headers_for_nvcc_include_the_kernels(self):
        text = (self.root / "include/lade/cuda/implementation.cuh").read_text()
        self.assertIn("#include \"../../../cuda/kernel.cu\"", text)
        self.assertNotIn("copy.cpp", text)
        self.assertFalse((self.root / "include/lade/io/net/implementation.cuh").exists())

    def test_each_optional_module_has_an_option_of_meson(self):
        lines = (self.root / "meson_options.txt").read_text().splitlines()
        self.assertIn("option('net', type: 'feature', description: 'Pages (libnet)')", lines)
        self.assertEqual([line for line in lines if "core" in line], [])

    def test_cmake_reads_fields_as_lists(self):
        lines = (self.root / "lib/modules.cmake").read_text().splitlines()
        for line in ["set(lade_modules core net cuda)", "set(lade_core_target lade::lade)",
                     "set(lade_net_library lade-net)", "set(lade_net_option LADE_NET)",
                     'set(lade_net_description "Pages (libnet)")',
                     "set(lade_net_dependencies libnet>=1.2)",
                     "set(lade_cuda_sources cuda/copy.cpp cuda/kernel.cu)"]:
            self.assertIn(line, lines)
        self.assertEqual([line for line in lines if "lade_core_option" in line], [])

    def test_a_list_that_is_long_for_cmake_has_a_word_in_each_line(self):
        words = [f"lib/file_{number}.cpp" for number in range(10)]
        lines = modules.cmake_list("lade_core_sources", words).splitlines()
        self.assertEqual(lines[0], "set(lade_core_sources")
        self.assertEqual(lines[1:], [*(f"  {word}" for word in words[:-1]), f"  {words[-1]})"])

    def test_a_mistake_in_a_section_is_named(self):
        self.assert_refused("[x]\nfolders = x\n", "[x] lacks the field 'description'")
        self.assert_refused("[x]\ndescription = x\nfolders = x\nlinks = x\n",
                            "[x] has an unknown field 'links'")
        self.assert_refused("[x]\ndescription = x\nfolders = x\nmodules = y\n",
                            "[x] must stand behind [y], which it depends on")


class Layering(Tree):
    def assert_faults(self, *faults):
        self.assertEqual(list(layering_test.faults(self.root)), list(faults))

    def assert_may_not(self, path, what):
        self.write(path, f"// A comment.\n#include {what}\n")
        self.assert_faults(f"{path}:2: may not include {what.strip('<>')}")

    def test_the_tree_is_right(self):
        self.assert_faults()

    def test_public_headers_include_no_headers_of_others_and_no_private_ones(self):
        for what in "<liburing.h>", "<sys/stat.h>", '"ring.hpp"':
            self.assert_may_not("include/lade/io/read.hpp", what)

    def test_a_folder_does_not_see_the_folders_behind_it(self):
        self.assert_may_not("lib/file.cpp", "<lade/io/read.hpp>")

    def test_the_umbrella_header_sees_all_folders_of_the_core(self):
        self.write("include/lade/lade.hpp", "#include <lade/io/read.hpp>")
        self.assert_faults()
        self.assert_may_not("include/lade/lade.hpp", "<lade/io/net/page.hpp>")

    def test_the_core_does_not_see_a_module_nested_in_it(self):
        self.assert_may_not("io/read.cpp", "<lade/io/net/page.hpp>")

    def test_the_core_does_not_include_what_a_module_nested_in_it_may(self):
        self.assert_may_not("io/read.cpp", "<net.h>")

    def test_a_nested_module_may_not_include_what_the_folder_around_it_may(self):
        for what in "<liburing.h>", "<sys/stat.h>", '"../ring.hpp"':
            self.assert_may_not("io/net/page.cpp", what)

    def test_modules_do_not_see_each_other(self):
        self.assert_may_not("cuda/copy.cpp", "<lade/io/net/page.hpp>")

    def test_the_first_line_that_matches_a_file_decides(self):
        self.assert_may_not("lib/dlpack.cpp", "<sys/stat.h>")

    def test_folders_outside_the_engine_include_public_headers_only(self):
        self.write("io/read.cpp", "#include <lade/support/text.hpp>")
        self.write("lib/file.cpp", "#include <lade/detail/runtime/wheel.hpp>")
        self.assert_faults()
        for path in "io/read.cpp", "include/lade/io/read.hpp", "cuda/copy.cpp", "cuda/kernel.cu":
            self.assert_may_not(path, "<lade/detail/runtime/wheel.hpp>")
            self.assert_may_not(path, "<lade/detail/common/text.hpp>")
            self.write(path, "")

    def test_folders_outside_the_engine_do_not_use_its_names(self):
        self.write("include/lade/detail/runtime/wheel.hpp",
                   "namespace lade::detail {\nclass inner_wheel {};\nstruct spoke {};\n}")
        self.write("include/lade/file.hpp",
                   "namespace lade {\nnamespace detail {\nclass file_wheel;\nclass shown_wheel;\n"
                   "}  // namespace detail\nusing detail::shown_wheel;\nclass seen_wheel;\n}")
        self.write("lib/file.cpp", "inner_wheel a;\ndetail::spoke b;")
        for fine in "spoke x;", "// inner_wheel", "my_inner_wheel x;", "shown_wheel x;", "seen_wheel x;":
            self.write("io/read.cpp", fine)
            self.assert_faults()
        for name, use in [("inner_wheel", "x = inner_wheel();"), ("spoke", "lade::detail::spoke x;"),
                          ("file_wheel", "std::list<file_wheel> x;"),
                          ("inner_wheel", "detail::inner_wheel x;")]:
            self.write("io/read.cpp", f"\n{use}")
            self.assert_faults(f"io/read.cpp:2: may not use {name}, which is private to the engine")

    def test_device_code_is_seen(self):
        self.assert_may_not("cuda/kernel.cu", "<net.h>")

    def test_device_headers_are_seen(self):
        self.assert_may_not("cuda/kernel.cuh", "<cuda_runtime.h>")

    def test_a_folder_of_no_module_is_named(self):
        self.write("gpu/kernel.cu", "")
        self.assert_faults("gpu/kernel.cu: its folder belongs to no module of modules.ini")

    def test_programs_and_build_directories_are_no_modules(self):
        for path in "examples/x.cpp", "build-x/x.cpp", "other/x.cpp":
            self.write(path, "#include <net.h>")
        (self.root / "other/meson-info").mkdir()
        self.assert_faults()


class Lists(Tree):
    def assert_faults(self, *faults):
        self.assertEqual(sorted(lists_test.faults(self.root)), sorted(faults))

    def test_the_tree_is_right(self):
        self.assert_faults()

    def test_files_that_are_not_listed_are_named(self):
        self.write("io/net/more.cpp", "")
        self.write("include/lade/detail/common/more.hpp", "")
        self.write("cuda/more.cu", "")
        self.write("tests/io/net/more_test.cpp", "")
        self.assert_faults("modules.ini: [net] sources: lacks io/net/more.cpp",
                           "modules.ini: [core] headers: lacks lade/detail/common/more.hpp",
                           "modules.ini: [cuda] sources: lacks cuda/more.cu",
                           "modules.ini: [net] tests: lacks io/net/more")

    def test_listed_files_that_are_gone_are_named(self):
        (self.root / "io/read.cpp").unlink()
        (self.root / "include/lade/io/net/page.hpp").unlink()
        (self.root / "tests/consume/lade-net.cpp").unlink()
        self.assert_faults("modules.ini: [core] sources: should not have io/read.cpp",
                           "modules.ini: [net] headers: should not have lade/io/net/page.hpp",
                           "tests/consume/lade-net.cpp: is missing")

    def test_a_header_of_the_core_that_the_umbrella_does_not_reach_is_named(self):
        self.write("include/lade/lade.hpp", "#include <lade/io/absent.hpp>")
        self.assert_faults("include/lade/lade.hpp: does not include lade/file.hpp")

    def test_lists_are_sorted(self):
        self.write("modules.ini", MODULES.replace("    io/read\n", "").replace(
            "    common/file\n", "    io/read\n    common/file\n"))
        self.assert_faults("modules.ini: [core] tests are not sorted")

    def test_what_is_made_from_the_file_is_up_to_date(self):
        for path in ("include/lade/io/net/implementation.hpp",
                     "include/lade/cuda/implementation.cuh", "lib/modules.cmake", "meson_options.txt"):
            self.write(path, "")
            self.assert_faults(f"{path}: not up to date; run ./dev modules")
            self.ask("write")
            self.assert_faults()

    def test_a_row_that_the_page_lacks_is_named(self):
        row = "| `cuda` | `auto`, `enabled`, `disabled` | Kernels (CUDA) |"
        self.write("docs/guides/integration.md", PAGE.replace(row, ""))
        self.assert_faults(f"docs/guides/integration.md: lacks {row}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
