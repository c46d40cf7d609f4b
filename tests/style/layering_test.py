# layering_test.py ROOT: who may include whom, by modules.ini.
import fnmatch
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root))
import modules  # noqa: E402

# In the field `includes`, one word for the headers of the system.
POSIX = ["arpa/*.h", "dirent.h", "fcntl.h", "linux/*.h", "netdb.h", "netinet/*.h", "poll.h",
         "pthread.h", "sched.h", "signal.h", "sys/*.h", "unistd.h"]
UMBRELLA = "include/lade/lade.hpp"  # includes headers of every folder of the core
STANDARD = r"[a-z0-9_]+"
COSTLY = ["fstream", "iostream", "regex"]  # not in headers of include: each program would pay
BESIDE = r'"\w+\.hpp"'  # a private header, in the same directory
OUTSIDE = "tests/support/toy_module.hpp"  # a module of others, from public headers alone

ENGINE = "lib"  # the folder of the core whose private headers no other folder may include

# Headers that only present what the engine measures. It includes none of them: see
# docs/decisions/measuring-in-the-engine.md.
REPORTS = ["lade/dashboard.hpp", "lade/metrics.hpp", "lade/metrics_server.hpp", "lade/profile.hpp"]
REPORTING = "lib/observability/"

TYPE = re.compile(r"^(?:class|struct|enum class|concept|using) (\w+)", re.M)
FUNCTION = re.compile(r"^(?!(?:using|return|class|struct|enum|namespace|static_assert|requires)\b)"
                      r"(?:\[\[\w+\]\] )?[A-Za-z_][\w:<>,&*. ]*[ &*>](\w+)\([^;{]*\)[^;{()]*[;{]", re.M)
DETAIL = re.compile(r"^namespace detail \{$(.*?)^\}  // namespace detail$", re.M | re.S)


def visible_folders(registry, module, folder):
    """The folders whose public headers a folder of the module may include: those of the modules
    that it needs, and of its own those up to itself, in the order of `folders`."""
    for needed in modules.with_needed(registry, module.name):
        for other in needed.folders:
            yield from modules.header_folders(other)
            if (needed, other) == (module, folder):
                return


def listed(module, path):
    """What `includes` lists for a source: the first line whose files match decides."""
    for files, headers in module.includes:
        if fnmatch.fnmatchcase(path, files):
            return [h for word in headers for h in (POSIX if word == "POSIX" else [word])]
    return []


def owner(registry, path):
    """The module and the folder of sources that a file belongs to, and whether it is public."""
    parent = path.rpartition("/")[0]
    for module in registry.values():
        for folder in module.folders:
            private = parent in modules.source_folders(folder)
            if private or parent in modules.header_folders(folder):
                return module, folder, not private
    return None


def may_include(registry, path, what):
    module, folder, public = owner(registry, path)
    if path == UMBRELLA:
        folder = module.folders[-1]
    if path.startswith("include/") and what in COSTLY:
        return False
    if re.fullmatch(STANDARD, what) or (not public and re.fullmatch(BESIDE, what)):
        return True
    if what.startswith("lade/"):
        own = f"include/{what}".rpartition("/")[0]
        return own in visible_folders(registry, module, folder)
    return not public and any(fnmatch.fnmatchcase(what, header) for header in listed(module, path))


def is_outside_engine(registry, path):
    _, folder, _ = owner(registry, path)
    return folder != ENGINE


def is_report(path):
    return path == UMBRELLA or path.startswith(REPORTING) or path.removeprefix("include/") in REPORTS


def declared(text):
    """The names of types, and those of functions with the bracket that begins their arguments."""
    return set(TYPE.findall(text)) | {name + "(" for name in FUNCTION.findall(text)}


def engine_names(root):
    """The types and functions of the engine: those of its private headers, and private ones in
    public headers. Not those that public headers declare as well."""
    private, public = set(), set()
    core = pathlib.Path(root) / "include/lade"
    for path in [*core.glob("*.hpp"), *core.glob(f"{modules.SUPPORT}/*.hpp")]:
        text = path.read_text()
        for inner in DETAIL.findall(text):
            private |= declared(inner)
        public |= declared(DETAIL.sub("", text))
        public |= set(re.findall(r"^using detail::(\w+);", text, re.M))
    for path in (core / "detail").rglob("*.hpp"):
        private |= declared(path.read_text())
    return private - public


def functions_of_modules(root, registry):
    """Members too: a module may have a function with the name of one of the engine."""
    texts = ((pathlib.Path(root) / path).read_text() for path in modules.sources_on_disk(root)
             if owner(registry, path) and is_outside_engine(registry, path))
    return {name for text in texts for name in re.findall(r"\b(\w+\()[^;]*?\)[^;{]*\{", text)}


def code(line):
    return "" if re.match(r"\s*#", line) else line.split("//")[0]


def engine_uses(text, names):
    """Names with `detail::`, and without it those of several words, which mean nothing else."""
    for number, line in enumerate(map(code, text.splitlines()), 1):
        for before, name, call in re.findall(r"(?<![\w.:>])((?:\w+::)*)(\w+)\b(\(?)", line):
            is_plain = before == "" and "_" in name
            is_engine = name in names or (call and name + call in names)
            if is_engine and (is_plain or before.endswith("detail::")):
                yield number, name


def includes(text):
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*(?:<(.*?)>|(".*?"))', line)
        if found:
            yield number, found[1] or found[2]


def faults(root):
    registry = modules.read(root)
    made = modules.written(registry)
    outside = pathlib.Path(root) / OUTSIDE
    if outside.exists() and "detail" in outside.read_text():
        yield f"{OUTSIDE}: may not use what is private"
    engine = engine_names(root) - functions_of_modules(root, registry)
    for path in modules.sources_on_disk(root):
        if path in made:
            continue
        if not owner(registry, path):
            yield f"{path}: its folder belongs to no module of modules.ini"
            continue
        text = (pathlib.Path(root) / path).read_text()
        is_outside = is_outside_engine(registry, path)
        for number, what in includes(text):
            is_hook = is_outside and what.startswith("lade/detail/")
            presents = what in REPORTS and not is_outside and not is_report(path)
            if is_hook or presents or not may_include(registry, path, what):
                yield f"{path}:{number}: may not include {what}"
        for number, name in engine_uses(text, engine if is_outside else ()):
            yield f"{path}:{number}: may not use {name}, which is private to the engine"


if __name__ == "__main__":
    wrong = list(faults(root))
    print(*wrong, sep="\n")
    sys.exit(len(wrong) > 0)
