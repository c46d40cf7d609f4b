# count.py SKIPS REPORT...: adds up JUnit reports and prints how many test cases passed, failed and
# were skipped. A skipped case that SKIPS does not list has failed. SKIPS has a line for each case
# that may be skipped: its name, in which * stands for anything, and behind a # why.
import fnmatch
import sys
from xml.etree import ElementTree


def listed(path):
    with open(path) as file:
        names = [line.split("#")[0].strip() for line in file]
    return [name for name in names if name]


def name_of(case):
    return f"{case.get('classname')}.{case.get('name')}"


skips, *reports = sys.argv[1:]
may_be_skipped = listed(skips)
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
            print(f"skipped, but not listed in {skips}: {name_of(case)}", file=sys.stderr)
            failed += 1
print(passed, failed, skipped)
