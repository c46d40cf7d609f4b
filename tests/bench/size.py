#!/usr/bin/env python3
# size.py ROOT: how much there is of the core, and what its headers cost a program.
#
# Counts types and lines that are not public (in lib, in include/lade/detail, and in the namespace
# detail of public headers), public headers, and members of what a stage is opened with. Compiles the
# first program of the README: seconds of CPU and megabytes, the least of three.
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

TYPE = re.compile(r"^\s*(?:class|struct|union|enum class)\s+(?:\[\[\w+\]\]\s*)?\w[\w:<>, ]*"
                  r"(?:\s+final)?\s*(?::[^;{]*)?\{", re.M)
PRIVATE = re.compile(r"^namespace (?:lade::)?detail \{.*?^\}  // namespace (?:lade::)?detail", re.M | re.S)


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def private_parts(root):
    """The texts that are not public."""
    for path in [*root.glob("lib/**/*.[ch]pp"), *root.glob("include/lade/detail/**/*.hpp")]:
        yield path.read_text()
    for path in root.glob("include/lade/*.hpp"):
        yield from PRIVATE.findall(path.read_text())


def fields(root, name):
    """The members of a struct, by the semicolons behind names at its first level."""
    for path in root.glob("include/lade/detail/**/*.hpp"):
        found = re.search(rf"^struct {name} \{{\n(.*?)^\}};", path.read_text(), re.M | re.S)
        if found:
            return len(re.findall(r"^  (?!friend|static|using|//)[\w:<>*&, ]+? \w+(?: = [^;(]*|\{\})?;",
                                  found[1], re.M))
    return None


def compiled(root, options):
    program = re.search(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.S)[1]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "program.cpp"
        source.write_text(program.replace("int main", "void train(const lade::tensor&);\nint main", 1))
        command = ["g++", "-std=c++20", *options, f"-I{root}/include", "-c", str(source), "-o",
                   f"{folder}/program.o"]
        times = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            subprocess.run(command, check=True)
            times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        return min(times), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main(root):
    parts = list(private_parts(root))
    print("private types:", sum(len(TYPE.findall(without_comments(part))) for part in parts))
    print("private lines:", sum(len(part.splitlines()) for part in parts))
    print("public headers:", len(list(root.glob("include/lade/*.hpp"))))
    for name in "opening", "open_context":
        if (count := fields(root, name)) is not None:
            print(f"members of {name}:", count)
    for level in "-O0", "-O2":
        seconds, megabytes = compiled(root, [level])
        print(f"the README's program, {level}: {seconds:.1f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
