# coroutine_test.py ROOT: finds what GCC 12 miscompiles in coroutines, as far as text can show it.
#
# In an expression with co_await or co_yield it destroys twice what a temporary lambda has
# captured and what a temporary aggregate holds. In the condition of an if or while, or behind && or
# ||, it never resumes from a co_await of a task that a call returns. docs/style.md says what to
# write instead.
import pathlib
import re
import sys

CAPTURES = r"(?<![\w\])])\[[^\[\]]+\]\s*(?=[({]|mutable\b)"  # [x](, not a[x]( and not [[...]]
CONDITION = r"(?:\b(?:if|while)\s*\(\s*|&&\s*|\|\|\s*)[!(]*\s*co_await\b(?!\s+[\w.>-]+next\(\)\s*\))"
SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


# The text from `begin` to the end of the bracket or statement that it is in.
def rest(text, begin):
    depth = 0
    for end in range(begin, len(text)):
        depth += (text[end] in "([{") - (text[end] in ")]}")
        if depth < 0 or (depth == 0 and text[end] == ";"):
            return text[begin:end]
    return text[begin:]


def faults(text):
    for found in re.finditer(r"\bco_(await|yield)\b", text):
        expression = rest(text, found.start())
        if re.search(CAPTURES, expression):
            yield found.start(), "a lambda with captures; name it first and move it in"
        if found[1] == "yield" and re.match(r"co_yield\s*[\w:<>, ]*\{\s*[^\s}]", expression):
            yield found.start(), "braces in co_yield; name the value first and move it in"
    for found in re.finditer(CONDITION, text):
        yield found.start(), "co_await in a condition; give the result a name first"
    for found in re.finditer(CAPTURES, text):
        head = re.match(r"\[[^\]]*\]\s*(\([^;{}]*?\))?[^;{}()]*\{", text[found.start():])
        if head and re.search(r"\bco_\w+\b", rest(text, found.start() + head.end())):
            yield found.start(), "a coroutine that is a lambda with captures; pass parameters"


# Statements, and the number of faults in each.
EXAMPLES = {
    "co_await run([x] { return 1; });": 1,
    "co_await run([](int a) { return a; }, b[x], {.direct = true});": 0,
    "co_yield sample{key, n};": 1,
    "co_yield {1, 2};": 1,
    "co_yield std::move(x);": 0,
    "auto f = [this, x](int a) mutable -> task<int> { co_return a; };": 1,
    "auto f = [this, x](int a) mutable -> int { return a; };": 0,
    "for (auto& [a, b] : m) { co_await a; }": 0,
    "if (a[i](x)) { co_await z; }": 0,
    "if (!co_await full(x)) return;": 1,
    "while (co_await full(x)) {}": 1,
    "if (a && co_await full(x)) {}": 1,
    "if (a) co_await full(x);": 0,
    "while (co_await in.next()) ++n;": 0,
    "while (auto item = co_await in.next()) use(*item);": 0,
    "bool some = co_await full(x);": 0,
}
for example, count in EXAMPLES.items():
    assert len(list(faults(example))) == count, example

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root))
import modules  # noqa: E402

wrong = False
examples = [path.relative_to(root) for path in sorted((root / "examples").rglob("*.[ch]pp"))]
for path in [*modules.sources_on_disk(root), *examples]:
    text = SILENT.sub(blank, (root / path).read_text())
    for position, why in faults(text):
        line = text.count("\n", 0, position) + 1
        print(f"{path}:{line}: {why}")
        wrong = True
sys.exit(wrong)
