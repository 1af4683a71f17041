"""How the site is built: `make docs`. Nothing is fetched while building or reading it."""

import matplotlib

import margrave

matplotlib.use("agg")

project = "Margrave"
author = "The Margrave developers"
copyright = author
version = release = margrave.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "gallery/GALLERY_HEADER.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]

# `name` in a docstring is code, and a link where it is something in the reference.
default_role = "py:obj"
toc_object_entries_show_parents = "hide"

# The docstrings give the types in words.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_ignore_module_all = False
# Members come from the class template, which leaves out what scikit-learn adds to every class.
numpydoc_show_class_members = False

myst_heading_anchors = 4

# What a button copies has no prompts and no output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "nested_sections": False,
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
}

html_theme = "pydata_sphinx_theme"
html_title = f"Margrave {version}"
html_static_path = ["_static"]
html_css_files = ["margrave.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": f"Margrave {version}"},
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "changelog": []}
