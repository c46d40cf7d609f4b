# programs_test.py ROOT: the pages of the tutorial show its programs. Each C++ block is of the
# program that is linked last before it: a part of it, of whole lines, without their common
# indentation. The first of each chapter is a whole program, and short. No program is missing.
import pathlib
import re
import sys
import textwrap

root = pathlib.Path(sys.argv[1])
programs = root / "examples/tutorial"
MOST_LINES = 40


# Each C++ block of a page, with the number of its first line and the last program linked before it.
def blocks(page):
    text = page.read_text()
    for found in re.finditer(r"^```cpp\n(.*?)^```$", text, flags=re.M | re.S):
        links = re.findall(r"\]\(\.\./\.\./examples/tutorial/([\w.]+)\)", text[:found.start()])
        yield text.count("\n", 0, found.start()) + 2, links[-1] if links else None, found[1]


def is_part(block, program):
    lines, wanted = program.splitlines(), block.splitlines()
    spans = (lines[i:i + len(wanted)] for i in range(len(lines) - len(wanted) + 1))
    return any(textwrap.dedent("\n".join(span)).splitlines() == wanted for span in spans)


def faults(page):
    for number, (line, name, block) in enumerate(blocks(page)):
        where = f"{page.relative_to(root)}:{line}"
        if name is None:
            yield f"{where}: no program is linked before it"
            continue
        program = (programs / name).read_text()
        shown.add(name)
        if number == 0 and block != program:
            yield f"{where}: is not the whole of {name}"
        elif number == 0 and block.count("\n") > MOST_LINES:
            yield f"{where}: {name} has more than {MOST_LINES} lines"
        elif not is_part(block, program):
            yield f"{where}: is not a part of {name}"


shown = set()
wrong = [fault for page in sorted(root.glob("docs/tutorial/*.md")) for fault in faults(page)]
for path in sorted([*programs.glob("*.cpp"), *programs.glob("*.hpp")]):
    if path.name not in shown:
        wrong.append(f"{path.relative_to(root)}: no page shows it")
print(*wrong, sep="\n")
sys.exit(len(wrong) > 0)
