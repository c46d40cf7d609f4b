# docs_test.py ROOT: links in the pages lead to a file and, behind a #, to a heading of it; links from
# README.md on lead to every page; commands that compile examples name files that there are, and the
# libraries of the modules.
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root))
import modules  # noqa: E402


def without_code(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


# The anchors of a page's headings, as they are made for Markdown: in lower case, without what is no
# letter, digit, hyphen or space, and with hyphens for spaces.
def anchors(page):
    headings = re.findall(r"^#+ (.*)$", without_code(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# The words of each call of g++ and nvcc in a page.
def compilations(page):
    for block in re.findall(r"^```\w*$(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE):
        for command in block.replace("\\\n", " ").splitlines():
            if command.startswith(("g++ ", "nvcc ")):
                yield command.split()


# What is wrong with a command that compiles an example.
def faults_of_compilation(words, registry):
    for word in words:
        if word.startswith("examples/") and not list(root.glob(word)):
            yield f"no {word}"
    if words[0] == "nvcc":
        return
    taken = [registry[name] for name in registry if f"examples/implementation/{name}.cpp" in words]
    needed = {word for module in taken for word in module.link}
    known = {word for module in registry.values() for word in module.link}
    if any(word.startswith("examples/") for word in words) and needed != known & set(words):
        yield f"{' '.join(words)}: its modules link {' '.join(sorted(needed))}"


# The pages that a page links to. A link to a folder is one to its pages.
def linked(page):
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", without_code(page)):
        target = (page.parent / link).resolve()
        yield from target.glob("*.md") if target.is_dir() else [target]


def reached(page):
    """All pages that links lead to from this one on."""
    found, rest = {page}, [page]
    while rest:
        new = {other for other in linked(rest.pop()) if other.suffix == ".md" and other.exists()} - found
        found |= new
        rest += new
    return found


wrong = []
registry = modules.read(root)
for page in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
    for link, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", without_code(page)):
        target = page.parent / link if link else page
        if "://" in link:
            continue
        if not target.exists():
            wrong.append(f"{page.relative_to(root)}: no {link}")
        elif anchor and anchor not in anchors(target):
            wrong.append(f"{page.relative_to(root)}: no heading #{anchor} in {target.name}")
    for words in compilations(page):
        wrong += [f"{page.relative_to(root)}: {fault}"
                  for fault in faults_of_compilation(words, registry)]
found = reached(root.resolve() / "README.md")
for page in root.resolve().glob("docs/**/*.md"):
    if page not in found:
        wrong.append(f"{page.relative_to(root.resolve())}: no link leads here from README.md")
print(*wrong, sep="\n")
sys.exit(len(wrong) > 0)
