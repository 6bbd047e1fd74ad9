"""What Sphinx does not do by itself: names lead to the reference, headings keep JupyterLab's anchors."""

import re
from html import escape
from pathlib import Path

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx

from book import api

NAME = re.compile(
    r'<(?:span class="n[cfn]?"|code class="docutils literal notranslate"><span class="pre")>(\w+)</span>'
    r"(?:</code>)?"
)
PICTURE = re.compile(r'<img (?![^>]*loading=)([^>]*?)src="([^"]+)"')
NOTEBOOK = re.compile(r"""(href=["'])(?!https?:)([^"'#]*)\.ipynb(?=#|["'])(?![^>]*\bdownload\b)""")
CAPTION = '<p class="caption" role="heading"'  # of the theme
HEADINGS = re.compile(r"(<h[1-6]>.*?</h[1-6]>|<a [^>]*>.*?</a>)", re.DOTALL)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension."""
    app.connect("autodoc-process-docstring", api.process_docstring)
    app.connect("doctree-read", keep_anchors)
    app.connect("html-page-context", finish, priority=900)  # after the theme
    return {"parallel_read_safe": True}


def keep_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Give every heading the anchor that JupyterLab gives it too, so that one link works in both."""
    for section in doctree.findall(nodes.section):
        title = escape(anchor(section.next_node(nodes.title).astext()))  # docutils writes ids as they are
        if title not in section["ids"]:
            section["ids"].append(title)


def anchor(title: str) -> str:
    """The anchor that JupyterLab gives a heading."""
    return title.replace(" ", "-")


def finish(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Mend a page's body: links between notebooks, names that lead to the reference, late pictures."""
    if pagename != "search":  # what it would mark in a title of a picture stops it
        context["script_files"] = [
            one for one in context["script_files"] if "sphinx_highlight" not in str(one)
        ]
    if "body" not in context:
        return
    body = NOTEBOOK.sub(r"\1\2.html", context["body"])
    body = body.replace(' aria-label="Toggle hidden content"', "")  # its words say what it shows
    body = PICTURE.sub(lambda found: _late(found, app), body)
    source = app.env.doc2path(pagename) if pagename in app.env.all_docs else ""
    if str(source).endswith(".ipynb"):
        body = linked(body, addresses(app, Path(source)))
    context["body"] = body
    context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
        CAPTION, f'{CAPTION} aria-level="2"'
    )


def linked(body: str, addresses: dict[str, str]) -> str:
    """A page whose names of ours lead to the reference; those in headings and links stay as they are."""
    parts = HEADINGS.split(body)

    def link(match: re.Match) -> str:
        address = addresses.get(match[1])
        return f'<a class="api" href="{address}">{match[0]}</a>' if address else match[0]

    parts[::2] = [NAME.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def addresses(app: Sphinx, notebook: Path) -> dict[str, str]:
    """What a notebook imports from the package: name -> where the reference tells of it, from its page."""
    objects = app.env.domains.python_domain.objects
    return {
        name: f"../{objects[full].docname}.html#{objects[full].node_id}"
        for name, full in api.used(notebook).items()
        if full in objects
    }


def _late(found: re.Match, app: Sphinx) -> str:
    """A picture that loads when a reader comes near, with its size, so that nothing moves when it comes."""
    sources = {name: path for path, (_, name) in app.env.images.items()}
    path, size = sources.get(found[2].rpartition("/")[2]), ""
    if path and "width=" not in found[1]:
        with Image.open(Path(app.srcdir, path)) as picture:
            size = f'width="{picture.width}" height="{picture.height}" '
    return f'<img loading="lazy" {size}{found[1]}src="{found[2]}"'
