"""The HTML report: all results of an evaluation on one self-contained page."""

from vbterrier.report.page.build import Page, write_report

__all__ = ["Page", "write_report"]
