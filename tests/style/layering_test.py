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
BESIDE = r'"\w+\.hpp"'  # a private header, in the same directory


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
    if re.fullmatch(STANDARD, what) or (not public and re.fullmatch(BESIDE, what)):
        return True
    if what.startswith("lade/"):
        own = f"include/{what}".rpartition("/")[0]
        return own in visible_folders(registry, module, folder)
    return not public and any(fnmatch.fnmatchcase(what, header) for header in listed(module, path))


def includes(text):
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*(?:<(.*?)>|(".*?"))', line)
        if found:
            yield number, found[1] or found[2]


def faults(root):
    registry = modules.read(root)
    made = modules.written(registry)
    for path in modules.sources_on_disk(root):
        if path in made:
            continue
        if not owner(registry, path):
            yield f"{path}: its folder belongs to no module of modules.ini"
            continue
        for number, what in includes((pathlib.Path(root) / path).read_text()):
            if not may_include(registry, path, what):
                yield f"{path}:{number}: may not include {what}"


if __name__ == "__main__":
    wrong = list(faults(root))
    print(*wrong, sep="\n")
    sys.exit(len(wrong) > 0)
