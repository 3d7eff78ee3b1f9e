from . import page as page
from . import plots as plots
from .page.evaluated import ReportContent as ReportContent
