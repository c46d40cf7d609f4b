# site_test.py ROOT: what docs/site/prepare.py makes of pages and headers, and what tests/docs/links_test.py
# finds in a site.
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
MODULES = """[core]
description = Loading
folders = lib
headers =
    lade/detail/hidden.hpp
    lade/run.hpp
"""
HEADER = """// One pass: over `a | b`. And more.

// Runs #include <x> of `x<a>`:
//
//   run(a);
struct run {
  int items = 0;  // how many,
                  // in all
  friend class other;
};  // run
"""
SITE = """<html><body><div class="title">{title}</div><a id="here"></a><a href="{link}">x</a></body></html>"""


class Tree(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        for name in ["modules.py", "docs/site/prepare.py", "tests/docs/links_test.py"]:
            self.write(name, (ROOT / name).read_text())
        self.write("modules.ini", MODULES)
        self.write("include/lade/run.hpp", HEADER)
        self.write("include/lade/detail/hidden.hpp", "")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def call(self, *command):
        return subprocess.run([sys.executable, *command], cwd=self.root, capture_output=True, text=True)

    def prepared(self, **pages):
        self.write("README.md", "# lade\n")
        for name in ["CHANGELOG", "CONTRIBUTING", "docs/benchmarks", "docs/style"]:
            self.write(f"{name}.md", f"# {name}\n")
        for name, text in pages.items():
            self.write(f"docs/{name.replace('_', '/')}.md", text)
        result = self.call("docs/site/prepare.py", ".", "out")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def made(self, path):
        return (self.root / "out" / path).read_text()


class Pages(Tree):
    def page(self, text):
        self.prepared(guides_a=f"# A: of all\n\n{text}\n", guides_b="# B\n")
        return self.made("pages/docs/guides/a.md").split("\n", 2)[2].rstrip()

    def test_links_lead_to_pages_of_the_site(self):
        for link, made in {"b.md": "guides-b.html", "b.md#x-y": "guides-b.html#x-y",
                           "#x": "guides-a.html#x", "../../README.md": "index.html",
                           "../guides": "guides.html", "https://host/a.md": "https://host/a.md",
                           "../../include/lade/run.hpp": "@ref lade/run.hpp"}.items():
            self.assertEqual(self.page(f"[text]({link})"), f"[text]({made})")

    def test_a_file_of_the_tree_becomes_a_page(self):
        self.write("examples/a.cpp", "int x;\n")
        self.assertEqual(self.page("[text](../../examples/a.cpp)"), "[text](examples-a-cpp.html)")
        self.assertIn("{.cpp}\nint x;\n", self.made("pages/examples/a.cpp.md"))

    def test_the_page_of_a_hidden_file_has_a_name_for_doxygen(self):
        self.write(".hidden", "x\n")
        self.assertEqual(self.page("[text](../../.hidden)"), "[text](hidden.html)")

    def test_an_image_is_copied(self):
        self.write("docs/guides/plots/a.png", "pixels")
        self.assertEqual(self.page("![text](plots/a.png)"), "![text](guides-plots-a.png)")
        self.assertEqual(self.made("images/guides-plots-a.png"), "pixels")

    def test_a_link_that_leads_nowhere_is_named(self):
        self.prepared()
        self.write("docs/more.md", "# More\n\n[text](no.md)\n")
        result = self.call("docs/site/prepare.py", ".", "out")
        self.assertEqual((result.returncode, result.stderr), (1, "docs/more.md: no docs/no.md\n"))

    def test_a_numbered_title_is_no_list(self):
        self.prepared(tutorial_a="# 1. First\n")
        self.assertEqual(self.made("pages/docs/tutorial/a.md"), "# 1\\. First {#tutorial-a}\n")

    def test_code_has_no_links_and_no_headings(self):
        code = "```\n# none\n[a](b.md)\n```"
        self.assertEqual(self.page(code), code)

    def test_headings_have_the_anchors_of_github(self):
        self.assertIn('<a id="one-for-one-map"></a>\\endhtmlonly\n## One for one: `map`',
                      self.page("text\n\n## One for one: `map`"))

    def test_bars_in_code_do_not_end_cells(self):
        self.assertEqual(self.page(r"| `a<b> \| c_d` |"), r"| <code>a&lt;b&gt; \| c\_d</code> |")

    def test_code_may_have_quotes(self):
        self.assertEqual(self.page("`a['b'] --c` and `d`"), r"<code>a['b'] \--c</code> and `d`")

    def test_bold_type_may_have_code(self):
        self.assertEqual(self.page("**Put `**/x`** first"), "<b>Put `**/x`</b> first")

    def test_the_text_of_a_link_to_a_header_is_plain(self):
        self.assertEqual(self.page("[`run`](../../include/lade/run.hpp)"), "[run](@ref lade/run.hpp)")

    def test_the_navigation_has_folders_in_order_of_reading(self):
        self.prepared(decisions_d="# D\n", guides_x="# X: y\n", guides_w="# W\n", tutorial_index="# Learn\n",
                      tutorial_1="# One\n", other_o="# O\n", more="# More\n",
                      index="# All\n\n[x](guides/x.md) [w](guides/w.md)\n")
        titles = self.made("layout.xml").split('title="')[1:]
        self.assertEqual([title.split('"')[0] for title in titles],
                         ["lade", "All", "Learn", "One", "Guides", "X", "W", "Reference", "Namespaces",
                          "Classes", "Concepts", "Decisions", "D", "Other", "O", "Benchmarks", "Changelog",
                          "Contributing", "Code style", "More"])


class Headers(Tree):
    def test_plain_comments_become_documentation(self):
        self.prepared()
        self.assertEqual(self.made("include/lade/run.hpp").splitlines(), [
            "/// \\file", "/// One pass: over `a | b`. And more.", "", "/// Runs \\#include \\<x\\> of `x<a>`:", "///",
            "///       run(a);", "struct run {", "  int items = 0;  ///< how many,",
            "                  ///< in all", "", "};  // run"])

    def test_the_reference_lists_public_headers_with_their_first_sentence(self):
        self.prepared()
        rows = [line for line in self.made("pages/reference.md").splitlines() if "hpp" in line]
        self.assertEqual(rows, ["| [lade/run.hpp](@ref lade/run.hpp) | One pass: over <code>a \\| b</code> |"])
        self.assertFalse((self.root / "out/include/lade/detail/hidden.hpp").exists())


class Links(Tree):
    def faults(self, link, navigation='[ "A", "a.html", null ]', title="A"):
        self.write("README.md", "# lade\n")
        self.write("docs/a.md", "# `A`\n")
        self.write("site/a.html", SITE.format(link=link, title=title))
        self.write("site/navtreedata.js", f"var NAVTREE =\n[\n  {navigation}\n];\n")
        result = self.call("tests/docs/links_test.py", ".", "site")
        self.assertEqual(result.returncode != 0, result.stdout.strip() != "", result)
        return result.stdout.strip()

    def test_links_that_lead_somewhere_are_right(self):
        for link in ["a.html", "a.html#here", "#here", "https://host/x.html"]:
            self.assertEqual(self.faults(link), "")

    def test_links_that_lead_nowhere_are_named(self):
        self.assertEqual(self.faults("b.md"), "a.html: no b.md")
        self.assertEqual(self.faults("a.html#there"), "a.html: no #there in a.html")
        self.assertEqual(self.faults("#there"), "a.html: no #there in a.html")

    def test_the_navigation_has_every_page_and_no_other(self):
        self.assertEqual(self.faults("#here", '[ "A", "a.html", null ], \n[ "B", "b.html", null ]'),
                         "the navigation: no b.html")
        self.assertEqual(self.faults("#here", title="B"), "docs/a.md: not in the navigation")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
