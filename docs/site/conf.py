"""Sphinx: the docs as one site. scripts/docs stages the pages (stage.py) and calls it."""
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
