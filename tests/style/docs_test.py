# docs_test.py ROOT: links in the pages lead to a file and, behind a #, to a heading of it.
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])


def without_code(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


# The anchors of a page's headings, as they are made for Markdown: in lower case, without what is no
# letter, digit, hyphen or space, and with hyphens for spaces.
def anchors(page):
    headings = re.findall(r"^#+ (.*)$", without_code(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


wrong = []
for page in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
    for link, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", without_code(page)):
        target = page.parent / link if link else page
        if "://" in link:
            continue
        if not target.exists():
            wrong.append(f"{page.relative_to(root)}: no {link}")
        elif anchor and anchor not in anchors(target):
            wrong.append(f"{page.relative_to(root)}: no heading #{anchor} in {target.name}")
print(*wrong, sep="\n")
sys.exit(len(wrong) > 0)
