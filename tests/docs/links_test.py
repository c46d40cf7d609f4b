# links_test.py ROOT SITE: in the site that ./dev docs has built, links lead to a file of it and, behind
# a #, to an anchor of that file, and every page of the tree is in the navigation.
import html.parser
import pathlib
import re
import sys
import urllib.parse

root, site = (pathlib.Path(argument) for argument in sys.argv[1:])


class Page(html.parser.HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = {"", "top"}, set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or name == "name" and tag == "a":
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def title(path):
    return re.search(r"^# (.*)$", path.read_text(), flags=re.MULTILINE)[1].replace("`", "")


# What is wrong with a link, or nothing. Doxygen links to classes within a class that are all private.
def fault(page, link):
    if re.match(r"[a-z]+:", link) or link == "#nested-classes":
        return None
    path, _, anchor = urllib.parse.unquote(link).partition("#")
    target = path or page
    if not (site / target).is_file():
        return f"{page}: no {path}"
    if target in pages and anchor not in pages[target].anchors:
        return f"{page}: no #{anchor} in {target}"
    return None


def links_of_navigation():
    for script in site.glob("*.js"):
        yield from re.findall(r'^ *\[ "[^"]*", "([^"]+)"', script.read_text(), flags=re.MULTILINE)


pages = {path.name: Page(path.read_text()) for path in site.glob("*.html")}
navigation = set(links_of_navigation())
wrong = {fault(name, link) for name, page in pages.items() for link in page.links}
wrong |= {fault("the navigation", link) for link in navigation}

shown = {re.sub(r"<[^>]*>", "", found) for link in navigation if link in pages
         for found in re.findall(r'<div class="title">(.*?)</div>', (site / link).read_text())}
for path in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
    if path.name != "README.md" and title(path) not in {html.unescape(text).strip() for text in shown}:
        wrong.add(f"{path.relative_to(root)}: not in the navigation")
wrong.discard(None)
print(*sorted(wrong), sep="\n")
sys.exit(len(wrong) > 0 or not navigation)
