from . import page as page
from . import plots as plots
from .page.evaluated import ComparisonOptions as ComparisonOptions
from .page.evaluated import ReportData as ReportData
