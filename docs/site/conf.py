"""Sphinx: the docs as one site. scripts/docs stages the pages (stage.py) and calls it."""
import os

project = "Tapescope"
author = "the authors of Tapescope"
extensions = ["myst_parser", "breathe"]
exclude_patterns = []
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
primary_domain = "c"
highlight_language = "text"
nitpicky = False
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "Tapescope"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]

breathe_projects = {"tapescope": "xml"}
breathe_default_project = "tapescope"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False
# Words that are no C: what a function's definition carries in front is not shown.
c_id_attributes = ["AD_API", "AD_INLINE", "AD_MUST_USE"]


def complete_furo(app, exception):
    """Debian's furo has its script in two files, one of which imports the other, which a page loads as
    no module; and asks the server for a style that site.css has."""
    static = os.path.join(app.outdir, "_static")

    def change(path, old, new):
        with open(os.path.join(static, path), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(static, path), "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))

    if exception is None and os.path.exists(f"{static}/scripts/gumshoe-patched.js"):
        with open(f"{static}/scripts/gumshoe-patched.js", encoding="utf-8") as file:
            change("scripts/furo.js", 'import Gumshoe from "./gumshoe-patched.js";', file.read())
        # A page without headings, as the index is, has nothing to follow.
        change("scripts/furo.js", "tocScroll === null", """!document.querySelector('.toc-tree a:not([href="#"])')""")
        change("styles/furo.css", "@import url(/javascript/normalize.css/normalize.css);", "")


def setup(app):
    app.connect("build-finished", complete_furo)
