"""Registration of the measures with ir_measures, and of figures and pages with the results that show them."""

from vbterrier import measures  # noqa: F401 - which registers them
from vbterrier.frames.results import LOADERS


def _plots() -> object:
    from vbterrier.report import plots

    return plots


def _page() -> object:
    from vbterrier.report.page.build import tables_page

    return tables_page


def _text() -> object:
    from vbterrier.report.tables import panel_text

    return panel_text


def _prose() -> object:
    from vbterrier.report.tables import folded_text

    return folded_text


def _table() -> object:
    from vbterrier.report.paper import result_table

    return result_table


# Results draw themselves with the figures of the report, and are written as pages in its style.
LOADERS |= {"plots": _plots, "page": _page, "text": _text, "prose": _prose, "table": _table}
