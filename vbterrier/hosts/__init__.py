"""Assumptions about ir_measures, PyTerrier and TrecTools."""
