"""Neural rerankers on AIDA: ``python tests/bench/neural.py DATA [--links LINKER ...] [--variant VARIANT]``.

DATA is the folder of the collections that ``tests/data`` reads. Prints the tables of ``docs/explanation/neural.md``, as
Markdown and with the p-values:
MAP in the open world and on the documents that entities reach, with the entities that the queries mean ("gold"), with
consensus entities and with those of a selector that is fitted again in each fold ("selected"), and CPU seconds of five
folds of equal size without the encoding of texts; the AUC of entity rankers on held-out binary labels of the first 20
consensus entities; and the change of scores of a test fold whose judgments are flipped.

The text of the documents cannot be redistributed: a document is the sequence of the surface forms of its gold mentions.
"""

import argparse
import pickle
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from aida import aida as read_aida
from scipy.stats import ttest_rel
from sklearn.model_selection import KFold

import vbterrier
from vbterrier.entities import (
    Architecture,
    NeuralEntityRanker,
    NeuralReranker,
    OverlapReranker,
    TokenVectors,
    Training,
    cross_validated,
    entity_labels,
    link_pool,
)
from vbterrier.entities.cross_validation import Folds, RowsByTopic, Teaching, fittable_copy
from vbterrier.entities.neural.batches import Texts
from vbterrier.entities.neural.models import MODELS
from vbterrier.entities.neural.raw import RawTexts
from vbterrier.entities.neural.reference import REFERENCE
from vbterrier.entities.neural.reranker import VARIANTS
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate import ReachOptions
from vbterrier.evaluate.settings import evaluate_settings
from vbterrier.settings import Inference

FOLDS = KFold(5, shuffle=True, random_state=0)
FIRST = "first stage"
KINDS = ("gold", "consensus", "selected")


def aida(data, first_stage):
    """AIDA-CoNLL with queries and texts in the run, the entity that each query mostly means, and names of entities.

    A document is relevant to a name if it uses it for the entity that the name mostly means.
    """
    collection = read_aida(data)
    text = collection.links["gold"].groupby("docno", sort=False)["surface"].agg(" ".join)
    run = collection.runs[first_stage]
    query = collection.topics.set_index("qid")["query"]
    meant = collection.intents.loc[collection.intents.groupby("qid", sort=False)["p"].idxmax(), ["qid", "entity_id"]]
    entities = pd.read_csv(collection.folder / "entities.tsv", sep="\t", dtype=str, keep_default_na=False)
    return SimpleNamespace(
        first_stage=first_stage,
        run=run.assign(query=run["qid"].map(query), text=run["docno"].map(text).fillna("")),
        qrels=collection.qrels,
        meant=meant.rename(columns={"entity_id": "docno"}).assign(score=1.0),
        tags=collection.tags,
        names=dict(zip(entities["qid"], entities["name"], strict=True)),
    )


def trained(collection, links, entities, model, encoded, variant, checkpoints=None, limits=None):
    """The run of a model in five folds, its parameters, and CPU seconds without encoding texts.

    ``limits``: epochs and patience, ``None`` for the defaults.

    With a folder of ``checkpoints``, each fold that is done is a file there and is not computed again.
    """

    def stage_of(training):
        options = {"names": collection.names, "training": training, "architecture": Architecture(variant=variant)}
        stage = NeuralReranker(links, entities, model=model, **options)
        # Texts are encoded once for all models, as in one process that compares them.
        stage._encoded = encoded
        if variant == "reference":
            stage._scoring = REFERENCE[model](encoded, {})
        return stage

    stage, seconds, parts = stage_of(Training(**(limits or {}))), 0.0, []
    topics, labels = RowsByTopic(collection.run, "run"), RowsByTopic(collection.qrels, "qrels")
    for fold in Folds(FOLDS, topics.names, 0):
        file = None if checkpoints is None else checkpoints.with_name(f"{checkpoints.name}-{fold.number}.csv")
        if file is not None and file.exists():
            part = pd.read_csv(file, dtype={"qid": str, "docno": str}, keep_default_na=False)
        else:
            start, each = time.process_time(), fittable_copy(stage)
            judged = labels.rows(fold.training | fold.validation)
            training, validation, test = map(topics.rows, (fold.training, fold.validation, fold.test))
            Teaching(training, judged, validation, judged, 0).fit_stage(each)
            part = each.transform(test)[["qid", "docno", "score", "rank"]]
            part = part.assign(seconds=time.process_time() - start, parameters=each.n_parameters)
            if file is not None:
                part.to_csv(file.with_suffix(".part"), index=False)
                file.with_suffix(".part").replace(file)
        seconds += part["seconds"].iloc[0]
        parts.append(part)
        print(model, "fold", fold.number, f"{part['seconds'].iloc[0]:.0f} CPU s", flush=True)
    run = pd.concat(parts, ignore_index=True)
    return run, {"parameters": int(run["parameters"].max()), "CPU s": seconds}


def table(collection, linker, models, encoded, variant, checkpoints=None, limits=None, kinds=KINDS):
    """MAP of all models in both settings, with gold query entities, consensus entities and those of a selector."""
    links = link_pool(collection.run, collection.tags[linker])
    consensus = vbterrier.entities.ConsensusEntities(links, cutoff=20)(collection.run)
    # A trained ranker, fitted again in each fold: its run for the conditional setting, and the stage for rerankers.
    selector = vbterrier.entities.ConsensusEntities(links, min_documents=1) >> vbterrier.entities.EntitySelector(
        links, names=collection.names
    )
    selected = cross_validated(selector, collection.run, collection.qrels, folds=FOLDS)
    columns = []
    for kind, entities, stage in (
        ("gold", collection.meant, collection.meant),
        ("consensus", consensus, consensus),
        ("selected", selected, selector),
    ):
        if kind not in kinds:
            continue
        systems = {FIRST: collection.run, "overlap": OverlapReranker(links, entities)(collection.run)}
        costs = {}
        for model in models:
            cell = (
                None
                if checkpoints is None
                else checkpoints / f"{collection.first_stage}-{variant}-{model}-{linker}-{kind}"
            )
            systems[model], costs[model] = trained(collection, links, stage, model, encoded, variant, cell, limits)
            print(linker, kind, model, f"{costs[model]['CPU s']:.0f} CPU s", flush=True)
        result = evaluate_settings(
            systems,
            collection.qrels,
            ["AP"],
            links=links,
            entities=entities,
            inference=Inference(n_resamples=100),
            options=ReachOptions(pool=collection.run),
        )
        for setting, values in result.values.groupby("setting", sort=False):
            wide = values.pivot(index="qid", columns="name", values="value").dropna()[list(systems)]
            columns.append(wide.mean().rename(f"{kind}, {setting}"))
            # A table of slow models takes an hour: its columns are shown as they are ready.
            print(linker, kind, setting, wide.mean().round(4).to_dict(), flush=True)
            if setting == "open-world":
                for baseline in (FIRST, "overlap"):
                    p = [ttest_rel(wide[name], wide[baseline]).pvalue if name != baseline else np.nan for name in wide]
                    columns.append(pd.Series(p, wide.columns, name=f"{kind}, p of {baseline}"))
        made = pd.DataFrame(costs, index=["parameters", "CPU s"]).T
        columns.append(made if kind == "gold" else made["CPU s"].rename(f"{kind}, CPU s"))
    return pd.concat(columns, axis=1).reindex([FIRST, "overlap", *models])


def documented(made):
    """The table as Markdown: open-world values in bold if they differ from the first stage with p < .001."""
    columns = [f"{kind}, {setting}" for kind in KINDS for setting in ("conditional", "open-world")]
    seconds = [f"{kind}, CPU s" if kind != "gold" else "CPU s" for kind in ("gold", "selected")]
    made = made.reindex(columns=["parameters", *columns, *seconds, *(f"{kind}, p of {FIRST}" for kind in KINDS)])
    lines = []
    for name, row in made.iterrows():
        cells = ["" if np.isnan(row["parameters"]) else f"{row['parameters']:,.0f}"]
        for column in columns:
            p = row[f"{column.split(',')[0]}, p of {FIRST}"] if column.endswith("open-world") else 1
            text = "" if np.isnan(row[column]) else f"{row[column]:.3f}".lstrip("0")
            cells.append(f"**{text}**" if p < 0.001 else text)
        cells += ["" if np.isnan(row[column]) else f"{row[column]:.1f}" for column in seconds]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def flipped(collection, linker, encoded):
    """Largest change of a score of the topics of a test fold when their judgments are flipped, by stages."""
    links = link_pool(collection.run, collection.tags[linker])
    every = vbterrier.entities.ConsensusEntities(links, min_documents=1)
    selector = every >> vbterrier.entities.EntitySelector(links, names=collection.names)

    def reranker(entities, model="duet"):
        stage = NeuralReranker(links, entities, model=model, names=collection.names)
        stage._encoded = encoded
        return stage

    ranker = vbterrier.entities.ConsensusEntities(links, cutoff=20) >> NeuralEntityRanker(
        links, collection.names, layers=0
    )
    pipelines = {
        "selector": selector,
        "MonoBERT": ranker,
        **{f"reranker {model}": reranker(every, model) for model in MODELS if model != "edrm-convknrm"},
        "selector, reranker": reranker(selector),
        "MonoBERT, reranker": reranker(ranker),
        "reranker, selector, reranker": reranker(every, "knrm") >> reranker(selector),
    }
    pairs = collection.run[["qid", "docno"]].merge(collection.qrels, how="left", on=["qid", "docno"])
    qrels = pairs.assign(label=pairs["label"].fillna(0).astype(int))
    test = next(iter(Folds(FOLDS, collection.run["qid"].unique(), 0))).test
    tested = qrels["qid"].isin(test)
    turned = qrels.assign(label=np.where(tested, 1 - qrels["label"], qrels["label"]))
    rows = []
    for name, pipeline in pipelines.items():
        before, after = (cross_validated(pipeline, collection.run, labels, folds=FOLDS) for labels in (qrels, turned))
        pairs = before.merge(after, on=["qid", "docno"], validate="one_to_one")
        change = (pairs["score_x"] - pairs["score_y"]).abs().groupby(pairs["qid"].isin(test)).max()
        rows.append((name, change[True], change[False]))
        print(rows[-1], flush=True)
    return pd.DataFrame(rows, columns=["stages", "test topics", "other topics"])


def entity_ranker(collection, linker):
    """AUC on binary labels of held-out topics: consensus, and MonoBERT trained on the labels of other topics."""
    links = link_pool(collection.run, collection.tags[linker], collection.qrels)
    run = vbterrier.entities.ConsensusEntities(links, cutoff=20)(collection.run)
    labels = entity_labels(links).dropna(subset="label").rename(columns={"entity_id": "docno"})
    rows = []
    for name, options in {
        "consensus": None,
        "head": {"layers": 0},
        "two layers": {"layers": 2},
        "head, published": {"layers": 0, "variant": "reference"},
        "two layers, published": {"layers": 2, "variant": "reference"},
    }.items():
        start = time.process_time()
        scored = (
            run
            if options is None
            else NeuralEntityRanker(links, collection.names, **options).cross_validated(run, collection.qrels)
        )
        seconds = time.process_time() - start
        joined = scored.merge(labels[["qid", "docno", "label"]], on=["qid", "docno"])
        found_auc = []
        for _, group in joined.groupby("qid"):
            ours, theirs = (group.loc[group["label"] == label, "score"].to_numpy()[:, None] for label in (1, 0))
            if len(ours) and len(theirs):
                found_auc.append(((ours > theirs.T) + 0.5 * (ours == theirs.T)).mean())
        rows.append((name, len(joined), len(found_auc), float(np.mean(found_auc)), seconds))
    return pd.DataFrame(rows, columns=["ranker", "pairs", "topics", "AUC", "CPU s"])


def encode(encoded, texts, checkpoints, variant):
    """Encode texts, or read their vectors from the folder of checkpoints, where they are kept."""
    start, file = time.process_time(), None if checkpoints is None else checkpoints / f"texts-{variant}.pickle"
    if file is not None and file.exists():
        encoded._known = pickle.loads(file.read_bytes())
    for text in texts:
        encoded(text)
    print(f"{len(texts)} texts encoded in {time.process_time() - start:.0f} CPU s", flush=True)
    if file is not None and not file.exists():
        file.write_bytes(pickle.dumps(encoded._known))


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--links", nargs="+", default=["gold", "wat", "genre"])
    parser.add_argument("--run", default="bm25", choices=["bm25", "dph"], help="the first stage")
    parser.add_argument("--models", nargs="*", help="models (default: all of the variant)")
    parser.add_argument("--variant", default="compact", choices=VARIANTS)
    parser.add_argument(
        "--checkpoints", type=Path, help="a folder for the folds of the models, which a later call resumes"
    )
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, help="entities of the queries")
    parser.add_argument("--epochs", type=int, help="the most epochs of a fold (default: that of the rerankers)")
    parser.add_argument("--patience", type=int, help="epochs without a gain on validation topics that end a fold")
    parser.add_argument("--rankers", action="store_true", help="entity rankers, too")
    parser.add_argument("--flipped", action="store_true", help="flip the judgments of a test fold, too")
    arguments = parser.parse_args()
    if arguments.checkpoints is not None:
        arguments.checkpoints.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", DegenerateWarning)
    collection = aida(arguments.data, arguments.run)
    is_reference = arguments.variant == "reference"
    encoded = RawTexts(TokenVectors()) if is_reference else Texts(TokenVectors())
    if arguments.models is None:
        arguments.models = list(REFERENCE if is_reference else MODELS)
    if arguments.models or arguments.flipped:
        texts = list(dict.fromkeys([*collection.run["text"], *collection.names.values(), *collection.run["query"]]))
        encode(encoded, texts, arguments.checkpoints, arguments.variant)
    for linker in arguments.links:
        print(f"\n{linker} links")
        if arguments.models:
            limits = {"epochs": arguments.epochs, "patience": arguments.patience}
            made = table(
                collection,
                linker,
                arguments.models,
                encoded,
                arguments.variant,
                arguments.checkpoints,
                limits,
                tuple(arguments.kinds),
            )
            print(made.round(4).to_string(), documented(made), sep="\n\n", flush=True)
        if arguments.flipped:
            print(flipped(collection, linker, encoded).to_string(index=False), flush=True)
        if arguments.rankers:
            print(entity_ranker(collection, linker).round(3).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
