from .distribution import BootstrapDistribution as BootstrapDistribution
from .distribution import bootstrap_distribution as bootstrap_distribution
from .incomplete import leave_group_out as leave_group_out
from .incomplete import shallow_pool as shallow_pool
from .incomplete import subsample_qrels as subsample_qrels
from .judge_next import write_judging as write_judging
from .predicted import predict_grades as predict_grades
