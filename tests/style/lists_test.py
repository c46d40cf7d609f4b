# lists_test.py ROOT BUILD: the lists of files that are kept by hand agree with each other.
# implementation.hpp includes what the library is built from; every header is installed.
import json
import pathlib
import re
import sys

root, build = map(pathlib.Path, sys.argv[1:])
targets = json.loads((build / "meson-info/intro-targets.json").read_text())
IMPLEMENTATIONS = {"lade": "implementation.hpp", "lade-media": "media/implementation.hpp"}
wrong = False


def compare(what, listed, expected):
    global wrong
    for name in sorted(listed ^ expected):
        print(f"{what}: {'lacks' if name in expected else 'should not have'} {name}")
        wrong = True


expected_headers = set()
for module, name in IMPLEMENTATIONS.items():
    built = [t for t in targets if t["name"] == module]
    header = root / "include/lade" / name
    if built:
        sources = {pathlib.Path(s) for s in built[0]["target_sources"][0]["sources"]}
        included = re.findall(r'#include "(.*)"', header.read_text())
        compare(header, {(header.parent / i).resolve() for i in included}, sources)
        folders = ["", "detail/", "io/"] if module == "lade" else [module.removeprefix("lade-") + "/"]
        for folder in folders:
            expected_headers |= set((root / "include/lade" / folder).glob("*.hpp"))

installed = re.findall(r"'(lade/[\w/]+\.hpp)'", (root / "include/meson.build").read_text())
ours = {h for h in expected_headers if h.name != "implementation.hpp"}
compare("include/meson.build", {root / "include" / h for h in installed}, ours)
sys.exit(wrong)
