# docs_test.py ROOT: links in the pages lead somewhere, and the README's program is the one that
# is compiled.
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
wrong = []
for page in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in link and not (page.parent / link).exists():
            wrong.append(f"{page.relative_to(root)}: no {link}")

program = (root / "examples/readme.cpp").read_text()
shown = re.search(r"```cpp\n(#include <lade/lade.hpp>.*?)```", (root / "README.md").read_text(), re.DOTALL)
if not shown or not all(part in program for part in shown[1].split("\n\n")):
    wrong.append("README.md: its program is not examples/readme.cpp")
print(*wrong, sep="\n")
sys.exit(len(wrong) > 0)
