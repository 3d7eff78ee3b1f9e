"""Flat keywords as the settings objects of a call, for tests that vary one setting at a time."""

from dataclasses import fields

from vbterrier import evaluate
from vbterrier.report import ReportContent
from vbterrier.settings import Data, Execution, Inference

SETTINGS = (Data, Inference, Execution)
NAMES = {Data: "data", Inference: "inference", Execution: "execution", ReportContent: "content"}
# Further settings of a call.
FURTHER = {
    "coverage_report": (evaluate.CoverageOptions,),
    "entity_grid": (evaluate.GridOptions,),
    "evaluate_closed_open": (evaluate.ReachOptions,),
    "evaluate_frozen": (evaluate.ReachOptions,),
    "evaluate_intents": (evaluate.IntentOptions,),
    "evaluate_settings": (evaluate.ReachOptions,),
    "release_gate": (evaluate.GateOptions,),
    "rerank_grid": (evaluate.GridOptions,),
    "variance_shares": (evaluate.VarianceOptions,),
    "write_report": (ReportContent,),
}
# Arguments of a call that have the name of a setting.
OWN = {
    "evaluate_closed_open": {"pool"},
    "evaluate_frozen": {"pool"},
    "evaluate_intents": {"topics"},
    "release_gate": {"margin"},
    "audit_judge": {"labels", "margin"},
    "entity_grid": {"topics"},
    "rerank_grid": {"pool", "qrels"},
    "corrected_scores": {"labels"},
    "label_quality": {"labels"},
}


def grouped(call, **options):
    """Arguments of a call: settings in the object that has them, other arguments unchanged."""
    own = OWN.get(call, set())
    for kind in (*FURTHER.get(call, ()), *SETTINGS):
        names = [field.name for field in fields(kind) if field.name in options and field.name not in own]
        if names:
            options[NAMES.get(kind, "options")] = kind(**{name: options.pop(name) for name in names})
    return options
