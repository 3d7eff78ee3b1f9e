"""Tags of documents by a tagger that is run again, as in replicas of a stochastic one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vbterrier.errors import ParameterError, warn, whole
from vbterrier.evaluate.inputs import documents_to_tag, tagging_stage
from vbterrier.kernels.resample import stream
from vbterrier.log import tracked_items
from vbterrier.stats.variants import Variants

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from vbterrier.frames.ranking import Run


@dataclass(frozen=True)
class RerunTagger:
    """Perturbation that runs the tagger again, for taggers that answer differently each time, such as language models.

    The tagger of :func:`vbterrier.evaluate_intents` is run ``n_runs`` times more on the documents of all systems,
    without its cache; replica b has the tags of run ``b mod (n_runs + 1)``, the same for all systems, also beside
    :class:`Paraphrases` or another perturbation that replaces wordings, candidates or rankings. The interval of
    replicas is that of the scores under the tags of one run on these documents: the errors that all runs share are not
    in it, see :func:`vbterrier.stats.fit_tagger`.

    Parameters
    ----------
    n_runs
        Number of runs beside the first. Functions of frames (``TagEntities(function, fields=None)``, as
        :class:`vbterrier.intents.ModelTagger`) get two more columns, ``replica`` and ``seed`` (a separate number for
        each document and run, and for each query if ``per_query``), which should be the only source of randomness.

    Examples
    --------
    >>> import itertools
    >>> import pandas as pd
    >>> import vbterrier
    >>> topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["jordan", "jordan team"]})
    >>> intents = pd.DataFrame({"entity_id": ["athlete", "country"], "prob": [0.8, 0.2]})
    >>> intents = pd.concat([intents.assign(qid="q1"), intents.assign(qid="q2")])
    >>> run = topics.assign(docno=["d1", "d2"], score=1.0, text=["Michael Jordan", "Jordan"])
    >>> replies = itertools.cycle(["athlete", "athlete", "athlete", "country"])
    >>> options = vbterrier.evaluate.IntentOptions(cutoff=1, n_replicas=3, perturb=[RerunTagger(2)])
    >>> result = vbterrier.evaluate_intents(
    ...     {"mine": run}, topics, intents=intents, tagger=lambda text: next(replies), measures=["ES"], options=options
    ... )
    >>> result.replicas.values[0, 0].tolist()
    [[0.8, 0.8], [0.8, 0.2], [0.8, 0.8]]
    """

    n_runs: int = 4

    def __post_init__(self) -> None:
        whole("n_runs", self.n_runs)

    def variants(self, intents: pd.DataFrame) -> Variants:
        """Return the same candidates for each run of the tagger."""
        return Variants([intents] * (self.n_runs + 1), order="turn")

    def tags(
        self,
        tagger: Any,
        first: pd.DataFrame,
        runs: Mapping[str, Run],
        cutoff: int | None,
        seed: int,
        *,
        progress: bool,
    ) -> list[pd.DataFrame]:
        """Return the tags of each run of the tagger; ``first`` are those of the first one."""
        stage = tagging_stage(tagger)
        again = None if stage is None else stage.without_cache()
        if again is None:
            raise ParameterError(
                f"{self}: tags that are given, or document ids, are the same in each run; give the tagger, as "
                "tagger=TagEntities(...) or a function"
            )
        documents = documents_to_tag(again, runs, cutoff)
        keys = documents["docno"].astype(str)
        if again.per_query:
            keys = documents["qid"].astype(str) + "\0" + keys
        distinct, place = keys.drop_duplicates(), keys.map({key: at for at, key in enumerate(keys.unique())})
        seeds = [stream(seed, key, "tagger").integers(2**31, size=self.n_runs).tolist() for key in distinct]
        made = [first]
        for b in tracked_items(range(self.n_runs), "tagging again", shown=progress):
            replica_seeds = [of_document[b] for of_document in seeds]
            made.append(again.tags(documents.assign(replica=b, seed=[replica_seeds[at] for at in place])))
        if all(map(_key(first).equals, map(_key, made[1:]))):
            warn(
                f"{self}: the {len(made)} runs of the tagger gave the same tags, so that their replicas do not differ: "
                "the tagger is not random, as a language model of temperature 0, or has a cache of its own"
            )
        return made


def _key(tags: pd.DataFrame) -> pd.DataFrame:
    """The tags as text, in an order that does not depend on that of the rows."""
    columns = [name for name in ("qid", "docno", "entity_id", "weight") if name in tags.columns]
    return tags[columns].astype(str).sort_values(columns, ignore_index=True)
