from .contracts import flatten_qrels as flatten_qrels
from .files.reading import read_answers as read_answers
from .files.reading import read_labels as read_labels
from .files.reading import read_mentions as read_mentions
from .files.reading import read_values as read_values
from .files.writing import write_queries as write_queries
from .ranking import ranked as ranked
