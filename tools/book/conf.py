"""Sphinx's settings for the book; the pages are those that site.py has gathered."""

import sys
from pathlib import Path

from markupsafe import Markup

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the package `book` lies

html_title = project = "Linformer from Scratch"
WORDS = '<a rel="license" href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>'
html_context = {  # of a page's foot; as `copyright` it would be escaped
    "copyright": Markup(f"the authors of Linformer from Scratch. The words: {WORDS}; the code: MIT.")
}
smartquotes = False  # headings keep the anchors that links name

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "book.extension"]

autodoc_default_options = {"members": True, "member-order": "bysource", "ignore-module-all": True}
autodoc_inherit_docstrings = False  # PyTorch's own
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

nb_execution_mode = "off"  # outputs stand in the notebooks
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "book.extension.anchor"
myst_update_mathjax = False
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_js_files = [(name, {"defer": "defer"}) for name in ("book.js", "bets.js", "search.js", "live/host.js")]
mathjax_path = "typeset.js"
mathjax_options = {"defer": "defer"}
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
html_copy_source = False
highlight_language = "none"  # commands are no Python
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div.cell_input pre, div.highlight-python pre, div.highlight-default pre"
