# prepare.py ROOT OUT: writes what Doxygen makes the site of. Lines keep their numbers.
#
#   OUT/pages     the pages, with links that Doxygen resolves and anchors as GitHub makes them; a page
#                 for each folder of docs that has none, and for each other file that a page links to
#   OUT/images    the images of pages
#   OUT/include   the public headers, with plain comments as comments for Doxygen
#   OUT/layout    the navigation
import html
import itertools
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1])))
import modules  # noqa: E402

root, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])

# Folders of docs in the order of the navigation; others follow. The reference is made of headers.
FOLDERS = ["tutorial", "concepts", "guides", "reference", "decisions"]
# Pages outside of folders behind them, with their names there; others follow.
LAST = {"docs/benchmarks.md": "Benchmarks", "CHANGELOG.md": "Changelog",
        "CONTRIBUTING.md": "Contributing", "docs/style.md": "Code style"}
MAIN, INDEX = "README.md", "docs/index.md"
ESCAPED_DASHES = r"\--"
IMAGES = {".jpg", ".png", ".svg"}


def anchor(heading):
    """As GitHub makes it; tests/style/docs_test.py says how."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def title(text):
    return re.search(r"^# (.*)$", text, flags=re.MULTILINE)[1].replace("`", "")


def code(span):
    """A span of code, as HTML where Doxygen would end it at a quote, or show the backslash of a bar."""
    if "'" not in span and r"\|" not in span:
        return span
    text = re.sub(r"([_@#])", r"\\\1", html.escape(span.strip("`"), quote=False))
    return f"<code>{text.replace('--', ESCAPED_DASHES)}</code>"


def inline(text):
    """Text with code and bold type as Doxygen understands them: also code in bold type."""
    parts = re.split(r"(`[^`]+`)", text)
    parts[1::2] = map(code, parts[1::2])
    bold = itertools.cycle(["<b>", "</b>"])
    parts[::2] = [re.sub(r"\*\*", lambda _: next(bold), part) for part in parts[::2]]
    return "".join(parts)


def short(title):
    return title.split(":")[0]


def name_of(path):
    """The page that a file of the tree becomes, without .html."""
    if path == INDEX:
        return "documentation"
    parts = pathlib.PurePosixPath(path).parts
    if path.endswith(".md"):
        parts = (*parts[:-1], parts[-1].removesuffix(".md").lower())
    parts = parts[parts[0] == "docs" and len(parts) > 1:]
    return re.sub(r"\W", "-", "-".join(parts).removesuffix("-index")).lstrip("-")


# (text, is code) for each line of a page.
def lines_of(text):
    code = False
    for line in text.splitlines():
        fence = line.startswith("```")
        yield line, code or fence
        code ^= fence


class Site:
    def __init__(self):
        paths = [*root.glob("*.md"), *root.glob("docs/**/*.md")]
        self.pages = {path.relative_to(root).as_posix(): path.read_text() for path in paths}
        self.files = set()  # other files of the tree that pages link to

    def link(self, page, target):
        """What a link of a page becomes."""
        path, _, heading = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            return target
        if not path:
            return f"{self.address(page)}#{heading}"
        path = os.path.relpath(root / pathlib.Path(page).parent / path, root)
        if not (root / path).exists():
            sys.exit(f"{page}: no {path}")
        if pathlib.PurePosixPath(path).suffix in IMAGES:
            return self.image(path)
        if path.startswith("include/lade/") and is_public(path):
            return f"@ref {path.removeprefix('include/')}"
        return self.address(path) + (f"#{heading}" if heading else "")

    def image(self, path):
        name = name_of(path.rpartition(".")[0]) + pathlib.PurePosixPath(path).suffix
        shutil.copy(root / path, out / "images" / name)
        return name

    def address(self, path):
        if path == MAIN:
            return "index.html"
        if f"{path}/index.md" in self.pages:
            path = f"{path}/index.md"
        elif path not in self.pages and path not in self.folders():
            self.files.add(path)
        return f"{name_of(path)}.html"

    def folders(self):
        """The folders of docs that have pages."""
        found = {pathlib.PurePosixPath(page).parent.as_posix() for page in self.pages}
        found = {folder for folder in found if folder.startswith("docs/")}
        known = [f"docs/{name}" for name in FOLDERS]
        return [folder for folder in known if folder in found] + sorted(found - set(known))

    def pages_of(self, folder):
        """The pages of a folder but its index, in the order in which the indices link to them."""
        pages = [page for page in self.pages if page.startswith(f"{folder}/")]
        indices = [self.pages.get(f"{folder}/index.md", ""), self.pages.get(INDEX, "")]
        links = re.findall(r"\]\((?:[\w-]+/)*([\w-]+\.md)", "".join(indices))
        order = {name: links.index(name) for name in links}
        key = {page: order.get(page.rpartition("/")[2], len(order)) for page in pages}
        return sorted((page for page in pages if page != f"{folder}/index.md"),
                      key=lambda page: (key[page], page))

    def title_of(self, folder):
        index = self.pages.get(f"{folder}/index.md")
        return title(index) if index else folder.rpartition("/")[2].capitalize()

    def single(self):
        """The pages outside of folders, with their names in the navigation."""
        others = {page: short(title(text)) for page, text in sorted(self.pages.items())
                  if pathlib.PurePosixPath(page).parent.name in {"", "docs"} and page not in {MAIN, INDEX}}
        return {page: LAST.get(page, others[page]) for page in [*LAST, *others] if page in others}

    def page(self, path):
        """A page for Doxygen. The blank line before a heading becomes its anchor."""
        lines = []
        for line, is_code in lines_of(self.pages[path]):
            heading = re.match(r"#+ (.*)$", line)
            if not is_code and heading and line.startswith("# "):
                named = "" if path == MAIN else f" {{#{name_of(path)}}}"
                text = re.sub(r"^(\d+)\.", r"\1\\.", title(line))  # which is no list
                line = f"# {text}{named}"
            elif not is_code and heading:
                lines[-1] = f'\\htmlonly<a id="{anchor(heading[1])}"></a>\\endhtmlonly'
                if path == MAIN:  # whose sections would stand among the pages
                    line = f"<h2>{heading[1]}</h2>"
            lines.append(line)
        text = self.with_contents("\n".join(lines) + "\n")
        parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
        parts[::2] = [inline(self.with_links(path, part)) for part in parts[::2]]
        return "".join(parts)

    def with_links(self, path, text):
        text = re.sub(r"\]\(([^)\s]+)\)", lambda found: f"]({self.link(path, found[1])})", text)
        return re.sub(r"\[`([^`]+)`\]\(@ref", r"[\1](@ref", text)  # whose text is no Markdown

    def with_contents(self, text):
        """A page of many sections with a list of them in the empty line behind the title."""
        return text.replace("\n\n", "\n[TOC]\n", 1) if text.count("endhtmlonly") >= 4 else text

    def folder(self, folder):
        """The page of a folder that has no index."""
        links = [f"- [{title(self.pages[page])}]({self.address(page)})" for page in self.pages_of(folder)]
        return "\n".join([f"# {self.title_of(folder)} {{#{name_of(folder)}}}", "", *links, ""])

    def file(self, path):
        """The page of a file or folder of the tree that is no page."""
        head = f"# {path} {{#{name_of(path)}}}\n\n"
        if (root / path).is_dir():
            names = sorted(entry.name for entry in (root / path).iterdir())
            return head + "".join(f"- {name}\n" for name in names)
        language = {".cpp": ".cpp", ".hpp": ".cpp", ".py": ".py"}.get(pathlib.Path(path).suffix, ".txt")
        return f"{head}~~~~~~{{{language}}}\n{(root / path).read_text()}~~~~~~\n"

    def tab(self, kind, title, url, inner=""):
        title = html.escape(title, quote=False).replace('"', "&quot;")
        return f'<tab type="{kind}" visible="yes" title="{title}" url="{url}">{inner}</tab>\n'

    def layout(self):
        tabs = self.tab("mainpage", "lade", "")
        if INDEX in self.pages:
            tabs += self.tab("user", short(title(self.pages[INDEX])), f"@ref {name_of(INDEX)}")
        for folder in self.folders():
            if folder == "docs/decisions":
                tabs += self.reference()
            inner = "".join(self.tab("user", short(title(self.pages[page])), f"@ref {name_of(page)}")
                            for page in self.pages_of(folder))
            index = f"{folder}/index.md"
            page = name_of(index if index in self.pages else folder)
            tabs += self.tab("usergroup", self.title_of(folder), f"@ref {page}", inner)
        for page, name in self.single().items():
            tabs += self.tab("user", name, f"@ref {name_of(page)}")
        return f'<doxygenlayout version="1.0">\n<navindex>\n{tabs}</navindex>\n</doxygenlayout>\n'

    def reference(self):
        lists = [("namespacelist", "Namespaces"), ("classlist", "Classes"), ("concepts", "Concepts")]
        inner = "".join(f'<tab type="{kind}" visible="yes" title="{name}" intro=""/>\n'
                        for kind, name in lists)
        return self.tab("usergroup", "Reference", "@ref reference", inner)


def is_public(header):
    return "/detail/" not in header and not header.endswith(("implementation.hpp", ".cuh"))


def reference():
    """The page of the reference: the public headers by module, with their first sentences."""
    text = "# Reference {#reference}\n\nThe public headers, by module.\n"
    for module in modules.read(root).values():
        text += f"\n## {module.library}: {module.description}\n\n| header | |\n|---|---|\n"
        for path in filter(is_public, module.headers):
            first = re.match(r"// ([^\n]*(?:\n// [^\n]*)*)", (root / "include" / path).read_text())[1]
            sentence = escaped(first.replace("\n// ", " ").split(". ")[0].rstrip("."))
            text += inline(f"| [{path}](@ref {path}) | {sentence.replace('|', BAR)} |\n")
    return text


BAR = r"\|"  # in a cell of a table

# A comment behind a declaration: not behind a forward declaration, nor behind a brace.
TRAILING = r"(?! *(?:\}|class |struct |namespace |#|//))(.*[;,\w] +)// (.*)$"


def header(text):
    """A header whose plain comments are comments for Doxygen, with examples as blocks of code."""
    lines, column = [], None  # of the comment behind the declaration above
    for line in text.splitlines():
        own = re.match(r"( *)//(?: (.*))?$", line)
        behind = re.match(TRAILING, line)
        if own and column == len(own[1]):
            line = f"{own[1]}///< {escaped(own[2] or '')}"
        elif own:
            column = None
            line = f"{own[1]}/// {words(own[2] or '', lines[-1] if lines else '')}".rstrip()
        elif behind:
            column = len(behind[1])
            line = f"{behind[1]}///< {escaped(behind[2])}"
        elif re.match(r" *friend class ", line):  # which Doxygen takes for another class
            line = ""
        lines.append(line)
    return "/// \\file\n" + "\n".join(lines) + "\n"


def words(text, before):
    """The text of a comment. Behind an empty line, indented text is an example."""
    if text.startswith("  ") and (before.endswith("///") or before.lstrip().startswith("///     ")):
        return f"    {text}"
    return escaped(text)


def escaped(text):
    """Text without what Doxygen takes for commands, links and HTML. It leaves code alone."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([\\@#<>]|(?<!\w)::)", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


(out / "images").mkdir(parents=True, exist_ok=True)
site = Site()
for page in site.pages:
    write(out / "pages" / page, site.page(page))
for folder in site.folders():
    if f"{folder}/index.md" not in site.pages:
        write(out / f"pages/{folder}/index.md", site.folder(folder))
for path in site.files:
    write(out / f"pages/{path}.md", site.file(path))
write(out / "pages/reference.md", reference())
for path in root.glob("include/lade/**/*.hpp"):
    if is_public(path.as_posix()):
        write(out / path.relative_to(root), header(path.read_text()))
write(out / "layout.xml", site.layout())
