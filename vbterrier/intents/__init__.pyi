from .calibration import calibration_error as calibration_error
from .constraints import ParseConstraints as ParseConstraints
from .constraints import parse_constraints as parse_constraints
from .coverage import oracle_success as oracle_success
from .dedup import MiniLM as MiniLM
from .tagging_quality import tag_quality as tag_quality
