# Adds up JUnit reports: prints how many test cases passed and how many failed.
import sys
from xml.etree import ElementTree

passed = failed = 0
for report in sys.argv[1:]:
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
        elif "skipped" not in outcomes and case.get("status") != "notrun":
            passed += 1
print(passed, failed)
