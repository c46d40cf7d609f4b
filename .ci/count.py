# Adds up JUnit reports: prints how many test cases passed, failed and were skipped.
import sys
from xml.etree import ElementTree

passed = failed = skipped = 0
for report in sys.argv[1:]:
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
        elif "skipped" in outcomes or case.get("status") == "notrun":
            skipped += 1
        else:
            passed += 1
print(passed, failed, skipped)
