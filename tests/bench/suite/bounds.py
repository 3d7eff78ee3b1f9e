"""What bounds targets that are not reached, as profiles of their calls show; shares are of CPU time."""

from __future__ import annotations

# The first whose words are all in a goal.
_BOUNDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("object columns",),
        (
            "Object columns: making text of objects takes 2 x 30 ns a row, most of it waiting for memory, and "
            "each object has to be looked at to refuse numbers and missing ids. The peer is twice as fast as on "
            "pandas' strings, as it works on objects."
        ),
    ),
    (
        ("alpha_nDCG", "250 x"),
        (
            "ES and VB at 250 x 1,000: a third reads intents and tags off the judgments, a fifth reads and checks "
            "the run, a fifth joins them, in hundreds of calls into pandas, pyarrow and NumPy that cost the same "
            "for a few topics."
        ),
    ),
    (
        ("alpha_nDCG", "times faster"),
        (
            "ES and VB at 6,980 x 1,000: 31 % reads and checks the run, 28 % joins the first ten with intents and "
            "tags, 16 % reads those off the judgments; the rest lays out intents and values."
        ),
    ),
    (
        ("250 x 1,000", "times faster"),
        (
            "250 x 1,000: 8 ms of 20 to 40 grow with the rows; the others are hundreds of calls into pandas, "
            "pyarrow and NumPy that cost the same for a few topics."
        ),
    ),
    (
        ("score nDCG@10", "times faster"),
        (
            "score, nDCG@10 at 6,980 x 1,000: 28 % looks whether a document stands twice in a topic, 18 % reads "
            "columns, finds where topics begin and checks scores, 20 % draws the 2,000 resamples of the interval "
            "that peers do not give, 10 % joins the first ten with the judgments; the rest makes tables of 7,000 "
            "values. The ends of all ids are looked at once, none is hashed: only checking less would be faster."
        ),
    ),
    (
        ("BNDCG@10", "times faster"),
        (
            "BNDCG@10 at 6,980 x 1,000: 34 % reads and checks the run, 22 % learns the prior from the first "
            "thirty ranks, 22 % goes through what unjudged documents could be, 11 % joins the first ten with the "
            "judgments; score adds variances and resamples."
        ),
    ),
    (
        ("five systems",),
        (
            "Five systems: every run is read, checked and cut as the first one is; the judgments, which are prepared "
            "once, are a tenth of the work for one."
        ),
    ),
    (
        ("file to nDCG@10",),
        (
            "File to nDCG@10 at 7 million rows: three quarters read and check 7 million lines, no slower than bare "
            "pyarrow; of the rest, see score."
        ),
    ),
    (
        ("memory above",),
        (
            "Memory at 7 million rows: the frames hold ids in several pieces, and documents are compared as one: a "
            "copy of 100 MiB. Numbers of topics take 53, scores as C floats 27, what is made of them on the way 59."
        ),
    ),
    (
        ("replicas",),
        (
            "Replicas: NumPy's gamma variates alone take more than a third, the streams of 250 queries and "
            "exponential variates a fifth, logarithms, powers and sums the rest."
        ),
    ),
)


def bound_of(goal: str, unit: str) -> str:
    """What bounds a target, empty where nobody looked.

    >>> bound_of("1,000 Dirichlet replicas, 250 x 8", "seconds").partition(":")[0]
    'Replicas'
    """
    said = f"{goal} {unit}"
    return next((text for words, text in _BOUNDS if all(word in said for word in words)), "")
