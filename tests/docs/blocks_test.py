# blocks_test.py ROOT COMPILER ARGUMENTS...: the C++ blocks of all Markdown pages compile. Each page
# is a namespace, which declarations.hpp may open first with the names that the page takes for
# granted; each block is a namespace in it. Blocks of the tutorial are of programs that are built:
# see programs_test.py.
#
# Within a block, a paragraph that begins like a declaration (DECLARATION) stays one; all others
# together are the body of a function, or of a coroutine if they await.
import pathlib
import re
import subprocess
import sys

DECLARATION = r"(static |class |struct |template|int main\(|lade::(async_generator|task)<.*\) ?[;{])"


def blocks(text):
    for found in re.finditer(r"^```cpp\n(.*?)^```$", text, flags=re.M | re.S):
        yield text.count("\n", 0, found.start()) + 2, found[1]


# Paragraphs with the number of their first line. Braces hold a paragraph together.
def paragraphs(first, block):
    lines, depth = [], 0
    for number, line in enumerate(block.splitlines(), first):
        depth += line.count("{") - line.count("}")
        if line and not line.startswith("#include"):
            lines.append((number, line))
        if not line and depth == 0 and lines:
            yield lines
            lines = []
    if lines:
        yield lines


def marked(page, lines):
    return f'#line {lines[0][0]} "{page}"\n' + "\n".join(line for _, line in lines) + "\n"


def compiled(page, first, block):
    declarations, statements = "", ""
    for lines in paragraphs(first, block):
        if re.match(DECLARATION, lines[0][1]):
            declarations += marked(page, lines).replace("int main()", "int program()")
        else:
            statements += marked(page, lines)
    body = "lade::task<> body()" if "co_await" in statements else "void body()"
    function = f"{body} {{\n{statements}}}\n" if statements else ""
    return f"namespace block_{first} {{\n{declarations}{function}}}\n"


root, *compile = sys.argv[1:]
root = pathlib.Path(root)
text = '#include "declarations.hpp"\n'
tutorial = set(root.glob("docs/tutorial/*.md"))
for page in [*root.glob("*.md"), *sorted(set(root.glob("docs/**/*.md")) - tutorial)]:
    text += f"namespace page_{re.sub(r'[^a-z0-9]', '_', page.stem.lower())} {{\n"
    text += "".join(compiled(page, *block) for block in blocks(page.read_text())) + "}\n"
sys.exit(subprocess.run([*compile, "-x", "c++", "-"], input=text, text=True).returncode)
