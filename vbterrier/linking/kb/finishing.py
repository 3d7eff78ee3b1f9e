"""From what was staged to the tables of a knowledge base: entities in order, priors made distributions."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from typing import TYPE_CHECKING

from vbterrier.errors import DegenerateWarning
from vbterrier.linking.kb.redirects import settle_redirects
from vbterrier.linking.kb.schema import COMPARED_AT_MOST, run
from vbterrier.linking.kb.staging import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vbterrier.linking.kb.staging import Staging

# Sums of priors that are off by no more are rounding.
_TOLERANCE = 1e-6

# The same alias of the same id twice says it once; of two ids that redirect to one it adds up.
_PAIRS = """
CREATE TABLE staged.pair AS
SELECT m.place AS mention, e.place AS entity, a.prior AS prior
FROM (
  SELECT text, id, sum(prior) AS prior FROM (
    SELECT text, id, max(prior) AS prior FROM staged.alias GROUP BY text, id, origin
  ) GROUP BY text, id
) AS a JOIN mention AS m ON m.text = a.text JOIN entity AS e ON e.id = a.id
"""

# Of each mention: its entities, how many of them have a prior, the sum of the priors.
_TOTALS = """
CREATE TABLE staged.total(mention INTEGER PRIMARY KEY, n INTEGER, n_given INTEGER, given REAL);
INSERT INTO staged.total
SELECT mention, count(*), count(prior), total(prior) FROM staged.pair GROUP BY mention ORDER BY mention;
"""

# p(e|m): the prior by the sum of the priors; those without one share evenly what the others leave of 1.
_MENTION_SENSES = """
INSERT INTO mention_sense
SELECT mention, row_number() OVER (PARTITION BY mention ORDER BY prob DESC, entity) - 1, entity, prob, mention
FROM (
  SELECT p.mention, p.entity, CASE
    WHEN t.given <= 0 AND t.n_given IN (0, t.n) THEN 1.0 / t.n
    WHEN p.prior IS NULL THEN max(0.0, 1.0 - t.given) / (t.n - t.n_given) / max(t.given, 1.0)
    WHEN t.n_given < t.n THEN p.prior / max(t.given, 1.0)
    ELSE p.prior / t.given
  END AS prob
  FROM staged.pair AS p JOIN staged.total AS t ON t.mention = p.mention
) ORDER BY 1, 2
"""

# p(e|form) = Σ_m w_m p(e|m) / Σ_m w_m over the mentions m of the form; 1/n where there are no priors at all, as
# linkers that are given the aliases have it. The mention that gives an entity most of it stands for it.
_FORM_SENSES = """
INSERT INTO form_sense
SELECT form, row_number() OVER (PARTITION BY form ORDER BY prob DESC, entity) - 1, entity, prob, mention
FROM (
  SELECT form, entity, mention,
    CASE WHEN EXISTS (SELECT 1 FROM staged.alias WHERE prior IS NOT NULL)
      THEN mass / sum(mass) OVER whole ELSE 1.0 / count(*) OVER whole END AS prob
  FROM (
    SELECT m.form, s.entity, s.mention,
      sum(m.weight * s.prob) OVER same AS mass,
      row_number() OVER (PARTITION BY m.form, s.entity ORDER BY m.weight * s.prob DESC, s.mention) AS nth
    FROM mention_sense AS s JOIN mention AS m ON m.place = s.key
    WINDOW same AS (PARTITION BY m.form, s.entity)
  ) WHERE nth = 1
  WINDOW whole AS (PARTITION BY form)
) ORDER BY 1, 2
"""

_TRIGRAMS = """
CREATE VIRTUAL TABLE form_trigram
USING fts5(text, content='', detail=none, columnsize=0, tokenize='trigram case_sensitive 1');
INSERT INTO form_trigram(rowid, text) SELECT place, ' ' || text || ' ' FROM form ORDER BY place;
INSERT INTO form_trigram(form_trigram) VALUES ('optimize');
CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, form_trigram, row);
INSERT INTO trigram SELECT term, doc FROM temp.vocabulary;
DROP TABLE temp.vocabulary;
"""


def steps(db: sqlite3.Connection, staging: Staging) -> Iterator[Callable[[], object]]:
    """What is to be done, one after another."""
    yield lambda: _require_consistent(db, staging)
    yield lambda: run(db, "ALTER TABLE staged.alias ADD COLUMN origin TEXT; UPDATE staged.alias SET origin = id")
    yield lambda: settle_redirects(db, staging)
    yield lambda: _entities(db)
    yield lambda: _mentions(db)
    yield lambda: db.execute(_PAIRS)
    yield lambda: run(db, _TOTALS)
    yield lambda: db.execute(_MENTION_SENSES)
    yield lambda: _warn_of_priors(db)
    yield lambda: db.execute(_FORM_SENSES)
    yield lambda: _attributes(db)
    yield lambda: _trigrams(db)


def _require_consistent(db: sqlite3.Connection, staging: Staging) -> None:
    """Refuse an id with two labels, an alias with two priors for one entity."""
    if not staging.is_strict:
        return
    twice = db.execute(
        "SELECT id, min(name), max(name), max(row) FROM staged.entity WHERE name <> '' "
        "GROUP BY id HAVING min(name) <> max(name) ORDER BY max(row) LIMIT 1"
    ).fetchone()
    if twice:
        entity, one, other, row = twice
        raise staging.blame(
            row, f"id {shown(entity)} has the labels {shown(one)} and {shown(other)}; one is an alias, or another id"
        )
    twice = db.execute(
        "SELECT text, id, min(prior), max(prior), max(row) FROM staged.alias "
        "GROUP BY text, id HAVING min(prior) <> max(prior) ORDER BY max(row) LIMIT 1"
    ).fetchone()
    if twice:
        text, entity, low, high, row = twice
        raise staging.blame(
            row, f"alias {shown(text)} of {shown(entity)} has the priors {low:g} and {high:g}; keep one"
        )


def _entities(db: sqlite3.Connection) -> None:
    """Number the entities by id; the first name that an id has is its name."""
    db.execute(
        "INSERT INTO entity(id, name) SELECT id, name FROM ("
        "  SELECT id, name, min(CASE WHEN name = '' THEN 9e18 ELSE row END) FROM staged.entity GROUP BY id"
        ") ORDER BY id"
    )
    db.execute("CREATE UNIQUE INDEX entity_id ON entity(id)")


def _mentions(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO form(text) SELECT DISTINCT form FROM staged.alias ORDER BY length(form), form")
    db.execute("INSERT INTO form_length SELECT length(text), min(place) FROM form GROUP BY 1 ORDER BY 1")
    db.execute("CREATE UNIQUE INDEX form_text ON form(text)")
    db.execute(
        "INSERT INTO mention(text, form, weight) SELECT a.text, f.place, coalesce(w.weight, 1.0) "
        "FROM (SELECT DISTINCT text, form FROM staged.alias) AS a JOIN form AS f ON f.text = a.form "
        "LEFT JOIN staged.weight AS w ON w.text = a.text ORDER BY a.text"
    )
    db.execute("CREATE UNIQUE INDEX mention_text ON mention(text)")


def _attributes(db: sqlite3.Connection) -> None:
    """Take each value of an attribute once, in the order they came."""
    db.execute(
        "INSERT INTO attribute SELECT e.place, a.nth, a.name, a.value, a.type FROM ("
        "  SELECT id, name, value, type, min(rowid) AS nth FROM staged.attribute GROUP BY id, name, value, type"
        ") AS a JOIN entity AS e ON e.id = a.id ORDER BY 1, 2"
    )


def _warn_of_priors(db: sqlite3.Connection) -> None:
    n_off, low, high = db.execute(
        "SELECT count(*), min(given), max(given) FROM staged.total "
        "WHERE given > 0 AND (n_given = n OR given > 1) AND abs(given - 1) > ?",
        (_TOLERANCE,),
    ).fetchone()
    n_mixed = db.execute("SELECT count(*) FROM staged.total WHERE n_given BETWEEN 1 AND n - 1").fetchone()[0]
    n_zero = db.execute("SELECT count(*) FROM staged.total WHERE n_given = n AND given = 0").fetchone()[0]
    said = []
    if n_off:
        said.append(f"the priors of {n_off} aliases sum to {low:.4g} to {high:.4g}, not 1: divided by their sum")
    if n_mixed:
        said.append(
            f"of {n_mixed} aliases some entities have a prior and some have none: those share what is left of 1, if any"
        )
    if n_zero:
        said.append(f"the priors of {n_zero} aliases are all 0: their entities are taken as equally probable")
    if said:
        warnings.warn("; ".join(said), DegenerateWarning, stacklevel=6)


def _trigrams(db: sqlite3.Connection) -> None:
    """Index the forms where there are too many to compare a mention with each."""
    n_forms = db.execute("SELECT count(*) FROM form").fetchone()[0]
    if n_forms <= COMPARED_AT_MOST:
        return
    fault = _no_trigrams()
    if fault:
        warnings.warn(
            f"{n_forms:,} names need an index of trigrams for fuzzy look-ups, which SQLite {sqlite3.sqlite_version} "
            f"cannot make ({fault}): the knowledge base is built without; build it with SQLite 3.34 or later",
            DegenerateWarning,
            stacklevel=6,
        )
    else:
        run(db, _TRIGRAMS)


def _no_trigrams() -> str:
    """What SQLite says against an index of trigrams, tried where nothing can break; empty when it can."""
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            run(db, _TRIGRAMS.split(";", maxsplit=1)[0])
    except sqlite3.OperationalError as error:
        return str(error)
    return ""
