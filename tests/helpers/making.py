"""How files of collections are made from what is downloaded: bytes in, bytes out."""

import csv
import io
import json
import re
import struct
from collections import defaultdict


def _topics(run):
    """Return the lines of a TREC run by topic: (score, docno)."""
    topics = defaultdict(list)
    for number, line in enumerate(run.decode("utf-8").splitlines(), 1):
        fields = line.split()
        if len(fields) < 5:
            raise ValueError(f"line {number} is not 'topic Q0 document rank score tag': {line[:80]!r}")
        topics[fields[0]].append((fields[4], fields[2]))
    return topics


def _run_lines(rows):
    return "".join(f"{' '.join(map(str, row))}\n" for row in rows).encode()


def first_documents(run, n, tag, order="text"):
    """Return the first n documents of each topic in trec_eval's order (float32, then docno, both falling).

    Scores are n + 1 - rank; topics are sorted as text, or as ``numbers``.
    """
    topics, n = _topics(run), int(n)
    rows = []
    for qid in sorted(topics, key=int if order == "numbers" else str):
        keyed = [(*struct.unpack("<f", struct.pack("<f", float(score))), docno) for score, docno in topics[qid]]
        best = enumerate(sorted(keyed, reverse=True)[:n], 1)
        rows += [(qid, "Q0", docno, rank, n + 1 - rank, tag) for rank, (_, docno) in best]
    return _run_lines(rows)


def head(run, n, tag):
    """Return the first n lines of each topic as they stand, with ranks from 1 and a tag."""
    return _run_lines(
        (qid, "Q0", docno, rank, score, tag)
        for qid, lines in _topics(run).items()
        for rank, (score, docno) in enumerate(lines[: int(n)], 1)
    )


def _json_lines(values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def ramdocs(original, part):
    """Return documents, topics or judgments of RAMDocs: support has label 1, misinformation -1, noise 0."""
    docnos, topics, judgments = {}, [], []
    for number, line in enumerate(original.decode("utf-8").splitlines(), 1):
        row, intents = json.loads(line), []
        correct = [document["answer"] for document in row["documents"] if document["type"] == "correct"]
        for intent, (entity, answer) in enumerate(zip(row["disambig_entity"], row["gold_answers"], strict=True), 1):
            support = correct.count(answer)
            intents.append({"intent": str(intent), "entity": entity, "answer": answer, "n_supporting_docs": support})
        topic = {
            "qid": f"r{number}",
            "query": row["question"],
            "intents": intents,
            "wrong_answers": row["wrong_answers"],
        }
        topics.append(topic)
        for document in row["documents"]:
            docno = docnos.setdefault(document["text"], f"d{len(docnos) + 1:04d}")
            is_correct = document["type"] == "correct"
            supported = [one["intent"] for one in intents if is_correct and one["answer"] == document["answer"]]
            other = ("0", -1 if document["type"] == "misinfo" else 0)
            labels = [(intent, 1) for intent in supported] or [other]
            judgments += [(topic["qid"], intent, docno, label) for intent, label in labels]
    if part == "docs":
        return _json_lines({"docno": docno, "text": text} for text, docno in docnos.items())
    return {"topics": _json_lines(topics), "qrels": _run_lines(judgments)}[part]


def _names(row):
    """Return the names of a legislator."""
    first, middle, last, suffix, nickname = (
        row[f"{part}name" if part else "suffix"] for part in ("first_", "middle_", "last_", "", "nick")
    )
    names = {f"{first} {last}", re.sub(r" \(.*\)$", "", row["wikipedia_id"])}
    if middle:
        names |= {f"{first} {middle} {last}", f"{first} {middle[0]}. {last}"}
    if nickname:
        names.add(f"{nickname} {last}")
    if suffix:
        names |= {f"{first} {last}, {suffix}", f"{first} {last} {suffix}"}
    if row["full_name"]:
        names.add(row["full_name"])
    return sorted(names)


def congress(historical, current, part):
    """Return entities, names or ambiguous names of the legislators of two CSV files."""
    rows = []
    for content, is_current in ((historical, False), (current, True)):
        reader = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""))
        rows += [(row, is_current, _names(row)) for row in reader]
    ids, aliases, entities = defaultdict(list), defaultdict(set), []
    for row, is_current, names in rows:
        stated = {"state": row["state"], "chamber": row["type"], "party": row["party"], "gender": row["gender"]}
        stated = {key: value for key, value in (stated | {"born": row["birthday"][:4]}).items() if value}
        title, entity_id = row["wikipedia_id"], row["bioguide_id"]
        attributes = stated | {"current": is_current}
        entity = {"id": entity_id, "label": title, "aliases": names, "attributes": attributes, "wikipedia": title}
        entities.append(entity)
        for name in names:
            ids[name].append(entity_id)
        for name in (*names, row["last_name"]):
            aliases[name.lower()].add(entity_id)
    if part == "entities":
        return _json_lines(entities)
    if part == "aliases":
        return "".join(f"{alias}\t{','.join(sorted(of))}\n" for alias, of in sorted(aliases.items())).encode()
    ambiguous = sorted(((-len(of), name, of) for name, of in ids.items() if len(of) > 1), key=lambda row: row[:2])
    return "".join(["name\tn\tids\n", *(f"{name}\t{-n}\t{','.join(of)}\n" for n, name, of in ambiguous)]).encode()


MAKERS = {"cut": first_documents, "head": head, "ramdocs": ramdocs, "congress": congress}
