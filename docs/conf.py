"""The documentation's configuration. `sphinx-build -W --keep-going -b html docs OUT` needs no network."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import vbterrier

# Sphinx shows the messages of all loggers; scores of the gallery are no news.
logging.getLogger("vbterrier").setLevel(logging.WARNING)
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "vbterrier"
author = "the contributors of vbterrier"
project_copyright = "the contributors of vbterrier; Apache-2.0"
version = release = vbterrier.__version__
language = "en-GB"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "measures",
    "public_names",
    "command_line",
    "schematic",
    "of_this_package",
]
# What is only written while the site is built.
exclude_patterns = ["_build"]
nitpicky = False

# Types stand in the docstrings where they say something.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

plot_formats = [("png", 110)]
plot_html_show_formats = False
plot_html_show_source_link = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"vbterrier {release}"
html_static_path = ["_static"]
html_css_files = ["vbterrier.css"]
html_copy_source = False
html_show_sphinx = False
