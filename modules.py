# modules.py QUESTION [MODULE]: what modules.ini says, for Meson, CMake, ./dev and the style tests.
#
#   meson           lines `MODULE.FIELD<tab>WORDS` for meson.build
#   options         the options of Meson that require every optional module; with the name of a
#                   module, those that disable it and what depends on it, and require the others.
#                   Modules whose programs are missing are disabled.
#   unbuildable     the modules whose programs are missing, with the programs
#   optional        the modules that the library can be built without
#   packages        Debian's packages that the modules need to be built
#   test-packages   those that their tests need in addition
#   write           writes the files of the tree that are made from modules.ini
import configparser
import dataclasses
import os
import pathlib
import shutil
import sys

SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
# Folders at the top of the tree that hold programs instead of modules.
PROGRAMS = {"docs", "examples", "subprojects", "tests"}
# The parts of the core. CONTRIBUTING.md says what is in which.
CORE = ["common", "coroutines", "memory", "runtime", "data", "pipeline", "stages", "observability"]
# The core's public headers for those who write modules and stages.
SUPPORT = "support"


@dataclasses.dataclass
class Module:
    """A section of modules.ini. docs/guides/writing-a-module.md explains the fields."""

    name: str
    description: str
    folders: list
    modules: list = dataclasses.field(default_factory=list)
    dependencies: list = dataclasses.field(default_factory=list)
    dependency_headers: list = dataclasses.field(default_factory=list)
    packages: list = dataclasses.field(default_factory=list)
    programs: list = dataclasses.field(default_factory=list)
    test_packages: list = dataclasses.field(default_factory=list)
    link: list = dataclasses.field(default_factory=list)
    includes: list = dataclasses.field(default_factory=list)
    headers: list = dataclasses.field(default_factory=list)
    sources: list = dataclasses.field(default_factory=list)
    tests: list = dataclasses.field(default_factory=list)

    @property
    def library(self):
        return "lade" if self.name == "core" else f"lade-{self.name}"

    @property
    def option(self):
        """The option of Meson, or nothing for the module that is always built."""
        return "" if self.name == "core" else self.name

    @property
    def target(self):
        """The target of CMake."""
        return f"lade::{self.library.removeprefix('lade-')}"

    @property
    def implementation(self):
        return f"lade/{header_folder(self.folders[0])}implementation.hpp"

    @property
    def kernels(self):
        """The header that is to implementation.hpp what kernels are to sources, or nothing."""
        has_kernels = any(source.endswith(".cu") for source in self.sources)
        return f"lade/{header_folder(self.folders[0])}implementation.cuh" if has_kernels else ""


def header_folder(folder):
    """The folder of the headers for a folder of sources, below include/lade."""
    return "" if folder == "lib" else f"{folder}/"


def source_folders(folder):
    """The folders of sources that `folder` stands for. They do not include nested ones, except for
    the core's, whose sources, private headers and tests are in these folders below it."""
    return [folder, *(f"lib/{part}" for part in CORE)] if folder == "lib" else [folder]


def header_folders(folder):
    """All folders of headers for a folder of sources."""
    own = f"include/lade/{header_folder(folder)}".rstrip("/")
    core = [f"{own}/{SUPPORT}", *(f"{own}/detail/{part}" for part in CORE)]
    return [own, *core] if folder == "lib" else [own]


def test_folders(folder):
    """All folders of tests for a folder of sources."""
    return [f"tests/{part}" for part in CORE] if folder == "lib" else [f"tests/{folder}"]


def parse(name, section):
    """A module. A field of words is a list of words, `includes` a list of (files, headers)."""
    fields = {field.name for field in dataclasses.fields(Module)} - {"name"}
    for field in section.keys() - fields:
        sys.exit(f"modules.ini: [{name}] has an unknown field '{field}'")
    for field in {"description", "folders"} - section.keys():
        sys.exit(f"modules.ini: [{name}] lacks the field '{field}'")
    module = Module(name, **{field: text.split() for field, text in section.items()})
    module.description = section["description"]
    lines = section.get("includes", "").strip().splitlines()
    module.includes = [(files, headers.split()) for files, _, headers in
                       (line.partition(": ") for line in lines)]
    return module


def read(root):
    """The modules of modules.ini by name, each behind the modules that it depends on."""
    file = configparser.ConfigParser(interpolation=None)
    file.read_string((pathlib.Path(root) / "modules.ini").read_text())
    modules = {}
    for name in file.sections():
        modules[name] = parse(name, file[name])
        for needed in modules[name].modules:
            if needed not in modules or needed == name:
                sys.exit(f"modules.ini: [{name}] must stand behind [{needed}], which it depends on")
    return modules


def with_needed(modules, name):
    """The module and all that it depends on, in the order of modules.ini."""
    names, rest = set(), [name]
    while rest:
        names.add(rest[-1])
        rest += modules[rest.pop()].modules
    return [module for module in modules.values() if module.name in names]


def sources_on_disk(root):
    """All sources and headers outside of programs, as paths below the root."""
    root = pathlib.Path(root)
    for top in sorted(root.iterdir()):
        outside = top.name in PROGRAMS or top.name.startswith((".", "build"))
        if top.is_dir() and not outside and not (top / "meson-info").exists():
            for path in sorted(top.rglob("*")):
                if path.suffix in SUFFIXES:
                    yield path.relative_to(root).as_posix()


def implementation(modules, module):
    """The text of the module's implementation.hpp."""
    beside = [m.implementation for m in with_needed(modules, module.name) if m is not module]
    lines = [f"// The compiled part of {module.library}. To use it without building a library, include",
             f"// this in exactly one .cpp file of the program{', beside:' if beside else '.'}",
             *[f"//   {header}" for header in beside],
             *([f"// and {module.kernels} in exactly one .cu file."] if module.kernels else []),
             "// Written by `./dev modules` from modules.ini.", "", "#pragma once", ""]
    folder = pathlib.PurePath("include", module.implementation).parent
    lines += [f'#include "{os.path.relpath(source, folder)}"' for source in module.sources
              if source.endswith(".cpp")]
    return "\n".join(lines) + "\n"


def kernels(module):
    """The text of the module's implementation.cuh."""
    folder = pathlib.PurePath("include", module.kernels).parent
    lines = [f"// The kernels of {module.library}. To use it without building a library, include this in",
             "// exactly one .cu file of the program.",
             "// Written by `./dev modules` from modules.ini.", "", "#pragma once", ""]
    lines += [f'#include "{os.path.relpath(source, folder)}"' for source in module.sources
              if source.endswith(".cu")]
    return "\n".join(lines) + "\n"


def meson_options(modules):
    """The text of meson_options.txt, which Meson reads before it can ask for anything."""
    options = [(m.option, m.description) for m in modules.values() if m.option]
    options.append(("tests", "Tests and benchmarks (GoogleTest)"))
    return "# Written by `./dev modules` from modules.ini.\n" + "".join(
        f"option('{option}', type: 'feature', description: '{description}')\n"
        for option, description in options)


def cmake_list(name, words):
    """A variable of CMake, in one line if it fits."""
    line = f"set({' '.join([name, *words])})\n"
    return line if len(line) <= 120 else line.replace(" ", "\n  ")


def cmake_registry(modules):
    """The text of lib/modules.cmake, by which CMakeLists.txt knows the modules."""
    text = "# Written by `./dev modules` from modules.ini.\n" + cmake_list("lade_modules", modules)
    for module in modules.values():
        fields = {"library": [module.library], "target": [module.target],
                  "option": [f"LADE_{module.option.upper()}"] if module.option else [],
                  "description": [f'"{module.description}"']}
        for field in ["modules", "dependencies", "dependency_headers", "programs", "sources"]:
            fields[field] = getattr(module, field)
        text += "\n" + "".join(cmake_list(f"lade_{module.name}_{field}", words)
                               for field, words in fields.items() if words)
    return text


def written(modules):
    """The files that are made from modules.ini: the path of each and its text."""
    texts = {f"include/{module.implementation}": implementation(modules, module)
             for module in modules.values()}
    texts |= {f"include/{module.kernels}": kernels(module)
              for module in modules.values() if module.kernels}
    return texts | {"lib/modules.cmake": cmake_registry(modules),
                    "meson_options.txt": meson_options(modules)}


def print_for_meson(modules):
    lists = ["dependencies", "dependency_headers", "headers", "link", "modules", "sources", "tests"]
    print("names", " ".join(modules), sep="\t")
    print("libraries", " ".join(m.library for m in modules.values()), sep="\t")
    for module in modules.values():
        chain = with_needed(modules, module.name)
        values = {field: " ".join(getattr(module, field)) for field in lists}
        values["description"] = module.description
        values["library"] = module.library
        values["option"] = module.option
        values["implementation"] = module.implementation
        values["kernels"] = module.kernels
        values["all_kernels"] = " ".join(needed.kernels for needed in chain if needed.kernels)
        values["implementations"] = " ".join(needed.implementation for needed in chain)
        # A linker resolves from left to right.
        values["links"] = " ".join(word for needed in reversed(chain) for word in needed.link)
        for field, value in values.items():
            print(f"{module.name}.{field}", value, sep="\t")


def missing_programs(module):
    """The programs of a module that are not installed."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/local/cuda/bin"
    return [program for program in module.programs if not shutil.which(program, path=path)]


def options(modules, without):
    """The options of Meson for all optional modules but one and those that depend on it."""
    if without and not (without in modules and modules[without].option):
        sys.exit(f"modules.py: no optional module '{without}'")
    for module in modules.values():
        if module.option:
            chain = with_needed(modules, module.name)
            left_out = any(needed.name == without or missing_programs(needed) for needed in chain)
            yield f"-D{module.option}={'disabled' if left_out else 'enabled'}"


def main(root, question, without=None):
    modules = read(root)
    if question == "meson":
        print_for_meson(modules)
    elif question == "options":
        print(*options(modules, without))
    elif question == "unbuildable":
        for module in modules.values():
            if missing := missing_programs(module):
                print(f"{module.name} (needs {' '.join(missing)})")
    elif question == "optional":
        print(*[module.name for module in modules.values() if module.option])
    elif question in ["packages", "test-packages"]:
        field = question.replace("-", "_")
        print(*dict.fromkeys(word for m in modules.values() for word in getattr(m, field)))
    elif question == "write":
        for path, text in written(modules).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
    else:
        sys.exit(f"modules.py: no question '{question}'")


if __name__ == "__main__":
    main(pathlib.Path(__file__).resolve().parent, *sys.argv[1:])
