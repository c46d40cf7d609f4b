# count.py SKIPS COMMAND REPORT...: adds up the JUnit reports of a command of ./dev and prints how
# many test cases passed, failed and were skipped. A skipped case that SKIPS does not list for the
# command has failed. SKIPS has a line for each case that may be skipped: its name, the commands,
# and behind a # why; in names and commands * stands for anything.
import fnmatch
import sys
from xml.etree import ElementTree


def listed(path, command):
    """The names of the cases that may be skipped under the command."""
    names = []
    with open(path) as file:
        for line in file:
            words = line.split("#")[0].split()
            if len(words) == 1:
                sys.exit(f"{path}: no command for {words[0]}")
            if any(fnmatch.fnmatch(command, word) for word in words[1:]):
                names.append(words[0])
    return names


def name_of(case):
    return f"{case.get('classname')}.{case.get('name')}"


skips, command, *reports = sys.argv[1:]
may_be_skipped = listed(skips, command)
passed = failed = skipped = 0
for report in reports:
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
        elif "skipped" not in outcomes and case.get("status") != "notrun":
            passed += 1
        elif any(fnmatch.fnmatch(name_of(case), pattern) for pattern in may_be_skipped):
            skipped += 1
        else:
            print(f"skipped, but not listed in {skips} for {command}: {name_of(case)}", file=sys.stderr)
            failed += 1
print(passed, failed, skipped)
