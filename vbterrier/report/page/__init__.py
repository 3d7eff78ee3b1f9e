"""The report: everything that an evaluation found, on one page that needs nothing else."""

from vbterrier.report.page.build import Page, write_report

__all__ = ["Page", "write_report"]
