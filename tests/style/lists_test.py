# lists_test.py ROOT: modules.ini lists what is in the tree, and what is made from it is up to date;
# lade.hpp includes the core.
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root))
import modules  # noqa: E402


UMBRELLA = "lade/lade.hpp"
APART = ["lade/implementation.hpp",  # defines what lade.hpp declares
         "lade/reactor_service.hpp"]  # for those who write modules


def compared(what, listed, expected):
    for name in sorted(listed ^ expected):
        yield f"{what}: {'lacks' if name in expected else 'should not have'} {name}"


def sorted_lists(module):
    for field in ["headers", "sources", "tests"]:
        listed = getattr(module, field)
        if listed != sorted(set(listed)):
            yield f"modules.ini: [{module.name}] {field} are not sorted"


def sources(root, module):
    expected = {path for folder in module.folders for suffix in ["cpp", "cu"]
                for path in glob(root, f"{folder}/*.{suffix}")}
    return compared(f"modules.ini: [{module.name}] sources", set(module.sources), expected)


def headers(root, module):
    expected = {path.removeprefix("include/") for folder in module.folders
                for public in modules.header_folders(folder)
                for path in glob(root, f"{public}/*.hpp")} - {module.implementation}
    return compared(f"modules.ini: [{module.name}] headers", set(module.headers), expected)


def tests(root, module):
    """Tests of a module, but those that tests/meson.build has rules of its own for."""
    special = re.findall(r"'([\w/]+)_test\.cpp'", (root / "tests/meson.build").read_text())
    folders = ["tests" if folder == "lib" else f"tests/{folder}" for folder in module.folders]
    found = {path.removeprefix("tests/").removesuffix("_test.cpp")
             for folder in folders for path in glob(root, f"{folder}/*_test.cpp")}
    expected = {name for name in found if name in module.tests or name not in special}
    return compared(f"modules.ini: [{module.name}] tests", set(module.tests), expected)


def glob(root, pattern):
    return {path.relative_to(root).as_posix() for path in root.glob(pattern)}


def included(root, path, seen):
    """All headers of lade that a header includes, itself among them."""
    if path not in seen and (root / "include" / path).exists():
        seen.add(path)
        for other in re.findall(r"#include <(lade/[\w/]+\.hpp)>",
                                (root / "include" / path).read_text()):
            included(root, other, seen)
    return seen


def umbrella(root):
    reached = included(root, UMBRELLA, set())
    public = {path.removeprefix("include/") for path in glob(root, "include/lade/*.hpp")}
    for path in sorted(public - reached - set(APART)):
        yield f"include/{UMBRELLA}: does not include {path}"


def made(root, registry):
    for path, text in modules.written(registry).items():
        if not (root / path).exists() or (root / path).read_text() != text:
            yield f"{path}: not up to date; run ./dev modules"


def rows(module):
    """What the tables of docs/guides/integration.md say of a module."""
    yield (f"| `{module.name}` | `{module.implementation}` | `{' '.join(module.link)}` "
           f"| `{module.library}` | `{module.target}` |")
    if module.option:
        yield f"| `{module.option}` | `auto`, `enabled`, `disabled` | {module.description} |"


def tables(root, registry):
    lines = (root / "docs/guides/integration.md").read_text().splitlines()
    for module in registry.values():
        for row in rows(module):
            if row not in lines:
                yield f"docs/guides/integration.md: lacks {row}"


def faults(root):
    registry = modules.read(root)
    for module in registry.values():
        for check in [sources, headers, tests]:
            yield from check(root, module)
        yield from sorted_lists(module)
        if not (root / f"tests/consume/{module.library}.cpp").exists():
            yield f"tests/consume/{module.library}.cpp: is missing"
    yield from umbrella(root)
    yield from made(root, registry)
    yield from tables(root, registry)


if __name__ == "__main__":
    wrong = list(faults(root))
    print(*wrong, sep="\n")
    sys.exit(len(wrong) > 0)
