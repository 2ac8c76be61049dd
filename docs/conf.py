"""How Sphinx builds the documentation: `make docs`, or `sphinx-build docs out/docs`."""

import inspect

from pygments.lexers.special import TextLexer

from parsl_sizer.version import __version__

project = "parsl_sizer"
author = "the parsl_sizer developers"
copyright = f"{author}, Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]

html_theme = "furo"
html_title = f"parsl_sizer {release}"
html_copy_source = False

# A link to a section of a page is checked like any other link.
myst_heading_anchors = 3

# In docstrings `name` is code, as it is on the pages.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 80

TABLE = """\
.. list-table::
   :header-rows: 1
   :widths: 18 17 65

   * - argument
     - default
     - what
""".splitlines()


def without_factories(*event):
    """A field made by a factory has "..." as its default: Sphinx cannot read "<factory>"."""
    *_, signature, returned = event
    return signature and signature.replace("<factory>", "..."), returned


def arguments_as_a_table(*event):
    """The section "Parameters" of a docstring, with the defaults that the code has."""
    _, _, _, documented, _, lines = event
    if "Parameters" not in lines:
        return
    start = lines.index("Parameters")
    called = documented.__init__ if inspect.isclass(documented) else documented
    parameters = inspect.signature(called).parameters
    table = list(TABLE)
    for line in lines[start + 2 :]:
        if line and not line.startswith(" "):
            table += [f"   * - ``{line}``", f"     - ``{parameters[line].default!r}``", "     -"]
        else:
            table.append(f"       {line.strip()}")
    lines[start:] = [*table, ""]


def setup(app):
    app.add_lexer("csv", TextLexer)
    app.connect("autodoc-process-signature", without_factories)
    app.connect("autodoc-process-docstring", arguments_as_a_table)
