from .closed_open import evaluate_closed_open as evaluate_closed_open
from .judging import corrected_scores as corrected_scores
from .judging import label_quality as label_quality
from .replicas import Paraphrases as Paraphrases
from .replicas import RerunPipeline as RerunPipeline
from .reranking import rerank_grid as rerank_grid
from .settings import evaluate_settings as evaluate_settings
from .variance import variance_shares as variance_shares
