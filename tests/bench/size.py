#!/usr/bin/env python3
# size.py ROOT [--list] [--tests [PATTERN]]: counts the core, and measures what it costs to compile.
# ROOT: a checkout, also of a revision before the core had folders. Ignores comments and strings,
# except in lines, and prints the counted names; those of types with --list.
#
# - Private: lib, include/lade/detail, and the namespace detail of public headers; also the backends
#   of the reactor, which once were in io. Public: the rest of include/lade/*.hpp, and
#   include/lade/support. So a type that moves from one to the other still counts.
# - Fields: data members of the struct that a stage is opened with: open_context, once `opening`.
#   By value: adds the public data members of each class of the core that such a member holds, and so
#   on. Values in std::optional, std::vector and other templates are held. Reachable: also follows
#   references, pointers and smart pointers. Each class counts once. Private members do not count,
#   and functions are not followed.
# - Links: classes with a bounded queue between coroutines. They have a slot_ring, a channel or a
#   vector of deques as a data member, or an alias of a channel. Classes that derive from a link, and
#   others that have or own one as a data member, are listed apart.
# - Drain loops: innermost loops that await next() or next_...() of a generator, and call push(),
#   take_free(), to.put(), split->give(), how->give(), or a start...() of a coroutine for the item.
# - Ways to park: classes with a data member std::coroutine_handle<>. Awaiters: classes with an
#   await_suspend().
# - Compilation: CPU seconds of user and system, and the largest resident memory of one process. The
#   first program of the README: the fastest of three. The sources that contain the implementations
#   of core and media, and the tests of the core whose path matches PATTERN: once, at -O0.
import argparse
import os
import pathlib
import re
import subprocess
import tempfile

PARTS = "common coroutines data memory observability pipeline runtime stages".split()
LITERAL = re.compile(r"//[^\n]*|R\"\((?:.|\n)*?\)\"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'")
PRIVATE = re.compile(r"^namespace (?:lade::)?detail \{.*?^\}  // namespace (?:lade::)?detail", re.M | re.S)
TYPE = re.compile(r"\b(enum class|enum|class|struct|union)\s+(?:\[\[[^\]]*\]\]\s*)?((?:\w+(?:<\w+>)?::)*\w+)"
                  r"(?:<[^;{}()]*>)?\s*(?:final\b\s*)?(?::(?!:)([^;{}]*))?\{")
NOT_DATA = re.compile(r"(friend|using|static|inline static|typedef|template|enum|class|struct|union|"
                      r"explicit|virtual|static_assert)\b|,|.*\boperator\b", re.S)
SPECIFIERS = re.compile(r"^(?:mutable|\[\[[^\]]*\]\]|alignas\([^)]*\)|\s)+")
POINTS = re.compile(r"[*&]|\b(?:shared|unique|counted|weak|node)_ptr\b|\bowner<")
QUEUE = re.compile(r"^(?:channel<|slot_ring$|std::vector<(?:std::unique_ptr<)?std::deque<)[^&*]*$")
TAKE = re.compile(r"co_await [\w.>()*\[\]-]*\bnext(?:_\w+)?\(")
PUT = re.compile(r"(?:\.|->)(?:push|take_free)\(|to\.put\(|(?:split|how)->give\(|(?:->|\s)start\w*\(")
COROUTINE = re.compile(r"\b(?:task|generator|async_generator)(?:<[^;{}()]*>)?\s+(?:\w+(?:<\w+>)?::)*(\w+)\(")


def end_of(text, begin):
    """The place behind the bracket that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] in "({") - (text[at] in ")}")
        if depth == 0:
            return at + 1
    return len(text)


class CoreClass:
    """Its data members, with access and type; its bases; its body without nested blocks."""

    def __init__(self, kind, bases, body):
        self.bases, self.members, self.own = bases or "", [], ""
        access, text, at = "private" if kind == "class" else "public", "", 0
        while at < len(body):
            if body[at] == "{":
                at, text = end_of(body, at), text + "{}"
                is_type = re.match(r"(?:class|struct|union|enum)\b", text)
                is_default = text.count("(") > text.count(")")  # of a parameter
                is_initializer = "(" not in without_templates(text.split("=")[0]) and text[0] not in "{,"
                if not (is_type or is_default or is_initializer):  # a function, which ends here
                    self.own, text = self.own + text, ""
                continue
            text += body[at]
            at += 1
            if found := re.fullmatch(r"\s*(public|private|protected)\s*:(?!:)", text):
                access, text = found[1], ""
            elif body[at - 1] == ";":
                self.add(access, text[:-1].strip())
                self.own, text = self.own + text, ""
            else:
                text = text.lstrip()

    def add(self, access, text):
        declared = re.sub(SPECIFIERS, "", re.split(r"=|\{\}", text)[0])
        plain = without_templates(declared)
        if NOT_DATA.match(plain):
            return
        if re.search(r"\(\*(?:const )?\w+\)\(", plain):
            self.members.append((access, "*"))  # a pointer to a function
        elif found := re.fullmatch(r"([^(]*?[\s*&>])\w+(?:\[.*\])?(?:,[\w\s,]*)?\s*", declared, re.S):
            commas = re.sub(r"\([^()]*\)", "", without_templates(text)).count(",")
            self.members += [(access, found[1].strip())] * (1 + commas)


def without_templates(text):
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def classes_in(code):
    """Classes by their names with those of the classes around them."""
    found, around = {}, []
    for match in TYPE.finditer(code):
        around = [(end, name) for end, name in around if match.start() < end]
        end = end_of(code, match.end() - 1)
        name = "::".join([name for _, name in around[-1:]] + [re.sub(r"<\w+>", "", match[2])])
        around.append((end, name))
        if not match[1].startswith("enum"):
            found[name] = CoreClass(match[1], match[3], code[match.end():end - 1])
    return found


def fields(classes, start, points):
    """The classes whose public members count, with their numbers."""
    counted, waiting = {}, [start]
    while waiting:
        name = waiting.pop(0)
        if name in counted:
            continue
        counted[name] = 0
        for access, kind in classes[name].members:
            if access != "public":
                continue
            counted[name] += 1
            if points or not POINTS.search(kind):
                scopes = [name.rsplit("::", i)[0] + "::" for i in range(name.count("::") + 1)] + [""]
                for word in re.findall(r"(?<!std::)\b\w+", kind):
                    waiting += [s + word for s in scopes if s + word in classes][:1]
    return [(name, count) for name, count in counted.items() if count]


def drain_loops(code):
    spans = []
    for match in re.finditer(r"\b(?:while|for)\s*(?=\()", code):
        end = end_of(code, match.end())
        block = re.match(r"\s*\{", code[end:])
        end = end_of(code, end + block.end() - 1) if block else code.find(";", end)
        text = code[match.start():end]
        if TAKE.search(text) and PUT.search(text):
            spans.append((match.start(), end))
    inner = [s for s in spans if not any(s[0] < o[0] and o[1] <= s[1] for o in spans)]
    return [COROUTINE.findall(code[:begin])[-1:] or ["?"] for begin, _ in inner]


def compiled(root, source, options):
    """Seconds of CPU and megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["g++", "-std=c++20", *options, f"-I{root}/include", "-c", str(source), "-o", f"{folder}/o"]
        _, status, usage = os.wait4(subprocess.Popen(command).pid, 0)
    if status:
        raise SystemExit(f"cannot compile {source}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def print_names(what, names):
    print(f"{what}: {len(names)}: {', '.join(sorted(names))}")


def main(root, list_types, tests):
    backends = [p for name in ("uring", "fallback", "reactor") for p in root.glob(f"io/{name}.[ch]pp")]
    private = [*root.glob("lib/**/*.[ch]pp"), *root.glob("include/lade/detail/**/*.hpp"), *backends]
    texts = {path: path.read_text() for path in private}
    headers = {path: path.read_text() for glob in ("*.hpp", "support/*.hpp")
               for path in (root / "include/lade").glob(glob)}
    hidden = [*texts.values(), *(part for text in headers.values() for part in PRIVATE.findall(text))]
    shown = [PRIVATE.sub("", text) for text in headers.values()]
    for what, parts in ("private", hidden), ("public", shown):
        types = [match[2] for part in parts for match in TYPE.finditer(LITERAL.sub("", part))]
        print(f"{what} types: {len(types)}" + (": " + ", ".join(sorted(types)) if list_types else ""))
        print(f"{what} lines:", sum(len(part.splitlines()) for part in parts))
    print("public headers:", len(headers))

    codes = {path: LITERAL.sub("", text) for path, text in {**texts, **headers}.items()}
    classes = {name: each for code in codes.values() for name, each in classes_in(code).items()}
    start = "opening" if "opening" in classes else "open_context"
    values, reachable = fields(classes, start, False), fields(classes, start, True)
    for what, counted in ("first level", values[:1]), ("by value", values), ("reachable", reachable):
        listed = ", ".join(f"{name} {count}" for name, count in counted)
        print(f"fields of {start}, {what}: {sum(count for _, count in counted)}: {listed}")

    def holding(pattern):
        return {n for n, c in classes.items() if any(re.search(pattern, m[1]) for m in c.members)}

    links = holding(QUEUE) | {n for n, c in classes.items() if re.search(r"using \w+ = channel<", c.own)}
    print_names("links", links)
    known = links
    for _ in range(3):  # as deep as classes are derived
        names = "|".join(name.split("::")[-1] for name in known)
        is_base = re.compile(rf"(?!.*enable_shared).*\b(?:{names})\b(?!::)")
        known = known | {n for n, c in classes.items() if is_base.match(c.bases)}
    print_names("derived from links", known - links)
    holders = holding(rf"^(?!std::stop_callback)[^&*]*\b(?:{names})\b(?!::)[^&*]*$")
    print_names("classes that hold one", {n for n in holders - links if n.split("::")[0] not in links})
    loops = [f"{path.name} {loop[0]}" for path, code in codes.items() for loop in drain_loops(code)]
    print_names("drain loops", loops)
    print_names("ways to park", holding(r"^std::coroutine_handle<>$"))
    print_names("awaiters", {n for n, c in classes.items() if "await_suspend(" in c.own})

    program = re.search(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.S)[1]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "program.cpp"
        source.write_text(program.replace("int main", "void train(const lade::tensor&);\nint main", 1))
        for level in "-O0", "-O2":
            seconds, megabytes = min(compiled(root, source, [level]) for _ in range(3))
            print(f"the README's program, {level}: {seconds:.1f} s, {megabytes:.0f} MB")
    for module in "core", "media":
        seconds, megabytes = compiled(root, root / f"examples/implementation/{module}.cpp", ["-O0"])
        print(f"the implementation of {module}, -O0: {seconds:.1f} s, {megabytes:.0f} MB")
    if tests is not None:
        paths = [p for folder in (".", *PARTS) for p in (root / "tests" / folder).glob("*_test.cpp")]
        costs = []
        for path in sorted(p for p in paths if re.search(tests, str(p.relative_to(root)))):
            costs.append(compiled(root, path, ["-O0", f"-I{root}", f"-I{root}/tests"]))
            print(f"{path.relative_to(root)}: {costs[-1][0]:.1f} s, {costs[-1][1]:.0f} MB")
        seconds, megabytes = sum(cost[0] for cost in costs), max((cost[1] for cost in costs), default=0)
        print(f"{len(costs)} tests: {seconds:.1f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", help="print the names of all types")
    parser.add_argument("--tests", nargs="?", const="", metavar="PATTERN")
    given = parser.parse_args()
    main(given.root.resolve(), given.list, given.tests)
