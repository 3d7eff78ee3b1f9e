"""The documentation's configuration. `sphinx-build -W --keep-going -b html docs OUT` needs no network."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import vbterrier

# Sphinx shows the messages of all loggers; scores of the gallery are no news.
logging.getLogger("vbterrier").setLevel(logging.WARNING)
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from inventories import mapping  # noqa: E402 - a module of _ext

project = "vbterrier"
author = "the contributors of vbterrier"
project_copyright = "the contributors of vbterrier; Apache-2.0"
version = release = vbterrier.__version__
language = "en-GB"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "sphinx_copybutton",
    "measures",
    "public_names",
    "command_line",
    "gallery",
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
# ``pandas.DataFrame`` as the type of a result is a link.
napoleon_preprocess_types = True

# Read the Docs reads the whole inventories; elsewhere a build needs no network.
intersphinx_mapping = mapping(online="READTHEDOCS" in os.environ)

# Outputs are not copied, nor the prompts of what is.
copybutton_selector = ":not(.highlight-text) > div.highlight > pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

plot_formats = [("png", 150)]
plot_html_show_formats = False
plot_html_show_source_link = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"vbterrier {release}"
html_static_path = ["_static"]
html_css_files = ["vbterrier.css"]
# Guides before the reference, and names before pages that merely mention them.
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_theme_options = {
    "source_repository": "https://github.com/vbterrier/vbterrier",
    "source_branch": "main",
    "source_directory": "docs/",
}
html_copy_source = False
html_show_sphinx = False
