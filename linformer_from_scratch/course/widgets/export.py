"""A notebook as a page with live widgets: `jupyter nbconvert --to live`, or JupyterLab's export menu."""

from copy import deepcopy

from nbconvert import HTMLExporter
from nbformat import NotebookNode

from linformer_from_scratch.course.widgets.page import embedded, scripts, widget_in


class LiveHTMLExporter(HTMLExporter):
    """HTML that needs no kernel and no network for its widgets; their numbers lie in the page."""

    export_from_notebook = "HTML with live widgets"  # the name in JupyterLab's menu

    def from_notebook_node(self, nb: NotebookNode, resources=None, **kwargs):
        """See `nbconvert.Exporter`."""
        nb = deepcopy(nb)
        kinds = set()
        for cell in nb.cells:
            for output in cell.get("outputs", []):
                if widget := widget_in(output):
                    kinds.add(type(widget))
                    output.data = NotebookNode({"text/html": embedded(widget)})
        page, resources = super().from_notebook_node(nb, resources, **kwargs)
        return page.replace("</body>", f"{scripts(kinds)}\n</body>"), resources
