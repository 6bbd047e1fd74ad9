"""What Sphinx does not do by itself: names lead to the reference, headings keep JupyterLab's anchors."""

import re
from functools import cache
from html import escape
from pathlib import Path
from unittest.mock import patch

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.images import get_image_size

from book import api, search

NAME = re.compile(
    r'<(?:span class="n[cfn]?"|code class="docutils literal notranslate"><span class="pre")>(\w+)</span>'
    r"(?:</code>)?"
)
PICTURE = re.compile(r'<img (?![^>]*loading=)([^>]*?)src="([^"]+)"')
NOTEBOOK = re.compile(r"""(href=["'])(?!https?:)([^"'#]*)\.ipynb(?=#|["'])(?![^>]*\bdownload\b)""")
COURSE = re.compile(r"(index|use|(chapters|teacher|solutions)/\d\d_\w+)$")  # pages read one after the other
SIGNATURE = re.compile(r"<dl>\n(?:<dd>.+</dd>\n)+</dl>")  # a parameter a line; HTML wants a dt in a list
COLUMNS = re.compile(r"\S {2,}\S")
CAPTION = '<p class="caption" role="heading"'  # of the theme
HEADINGS = re.compile(r"(<h[1-6]>.*?</h[1-6]>|<a [^>]*>.*?</a>)", re.DOTALL)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension."""
    app.connect("builder-inited", without_its_search)
    app.connect("autodoc-process-docstring", api.process_docstring)
    app.connect("autodoc-skip-member", api.imported)
    app.connect("doctree-read", keep_anchors)
    app.connect("doctree-read", keep_question)
    app.connect("doctree-read", mark_columns)
    app.connect("doctree-read", search.collect)
    app.connect("html-page-context", list_titles, priority=100)  # before the theme
    app.connect("html-page-context", finish, priority=900)  # after it
    app.connect("build-finished", search.write)
    return {"parallel_read_safe": True}


def without_its_search(app: Sphinx) -> None:
    """Have Sphinx make no index and no page of its own: the book's stand in search.py and pages/search.md."""
    app.builder.search = False


def keep_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Give every heading the anchor that JupyterLab gives it too, so that one link works in both."""
    for section in doctree.findall(nodes.section):
        title = escape(anchor(section.next_node(nodes.title).astext()))  # docutils writes ids as they are
        if title not in section["ids"]:
            section["ids"].append(title)


def keep_question(app: Sphinx, doctree: nodes.document) -> None:
    """Note the question that a chapter begins with, for the pages beside it."""
    if app.env.docname.startswith(("chapters/", "teacher/")) and (strong := doctree.next_node(nodes.strong)):
        app.env.metadata[app.env.docname]["question"] = strong.astext()


def mark_columns(app: Sphinx, doctree: nodes.document) -> None:
    """Mark what a cell printed in columns, which must not wrap."""
    for block in doctree.findall(nodes.literal_block):
        if "output" in block["classes"] and COLUMNS.search(block.astext()):
            block["classes"].append("columns")


def anchor(title: str) -> str:
    """The anchor that JupyterLab gives a heading."""
    return title.replace(" ", "-")


def list_titles(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Have the list of pages made of titles; of all that they contain, it takes half of Sphinx's time."""
    context["toctree"] = patch.object(app.env, "tocs", titles(app.env))(context["toctree"])


@cache
def titles(env: BuildEnvironment) -> dict[str, nodes.bullet_list]:
    """Page -> its contents without what stands below its title, but for lists of other pages."""
    tocs = {page: toc.deepcopy() for page, toc in env.tocs.items()}
    for title in (title for toc in tocs.values() for title in toc if len(title) > 1):
        title[1][:] = list(title[1].findall(addnodes.toctree))
    return tocs


def finish(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Mend a page: links between notebooks, names that lead to the reference, late pictures, ways on."""
    context["script_files"] = [one for one in context["script_files"] if "sphinx_highlight" not in str(one)]
    if "body" not in context:
        return
    body = NOTEBOOK.sub(r"\1\2.html", context["body"])
    body = body.replace(' aria-label="Toggle hidden content"', "")  # its words say what it shows
    body = SIGNATURE.sub(lambda lines: lines[0].replace("dl>", "div>").replace("dd>", "div>"), body)
    body = PICTURE.sub(lambda found: _late(found, app), body)
    source = app.env.doc2path(pagename) if pagename in app.env.all_docs else ""
    if str(source).endswith(".ipynb"):
        body = linked(body, addresses(app, Path(source), "../" * pagename.count("/")))
    context["body"] = body
    context["prev"], context["next"] = neighbour(app, pagename, 1), neighbour(app, pagename, 2)
    tree = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = tree.replace(CAPTION, f'{CAPTION} aria-level="2"')


def neighbour(app: Sphinx, pagename: str, where: int) -> dict[str, str] | None:
    """What lies below a page of the course: the one before (where 1) or after it (2), with its question."""
    page = app.builder.relations.get(pagename, (None,) * 3)[where]
    if not (page and COURSE.match(page) and COURSE.match(pagename)):
        return None
    title = escape(app.env.titles[page].astext())
    question = app.env.metadata[page].get("question", "")
    return {
        "link": app.builder.get_relative_uri(pagename, page),
        "title": f'{title}<span class="question">{escape(question)}</span>',
    }


def linked(body: str, addresses: dict[str, str]) -> str:
    """A page whose names of ours lead to the reference; those in headings and links stay as they are."""
    parts = HEADINGS.split(body)

    def link(match: re.Match) -> str:
        address = addresses.get(match[1])
        return f'<a class="api" href="{address}">{match[0]}</a>' if address else match[0]

    parts[::2] = [NAME.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def addresses(app: Sphinx, notebook: Path, up: str) -> dict[str, str]:
    """What a notebook imports of the package: name -> its place in the reference, `up` from its page."""
    objects = app.env.domains.python_domain.objects
    return {
        name: f"{up}{objects[full].docname}.html#{objects[full].node_id}"
        for name, full in api.used(notebook).items()
        if full in objects
    }


def _late(found: re.Match, app: Sphinx) -> str:
    """A picture that loads when a reader comes near, with its size, so that nothing moves when it comes."""
    sources = {name: path for path, (_, name) in app.env.images.items()}
    path, size = sources.get(found[2].rpartition("/")[2]), ""
    if path and "width=" not in found[1]:
        width, height = get_image_size(Path(app.srcdir, path))
        size = f'width="{width}" height="{height}" style="--drawn: {width}px" '
    return f'<img loading="lazy" {size}{found[1]}src="{found[2]}"'
