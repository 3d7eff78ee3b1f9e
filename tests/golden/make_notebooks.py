"""Run the notebooks and write them back with their outputs, and with nothing of the machine that ran them.

python tests/golden/make_notebooks.py [NAME...]

Sections on real collections find them through ``VBTERRIER_DATA``, or in ``../shared/data``.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(path):
    """The notebook at a path, executed in its folder."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=600, record_timing=False, resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    for place, cell in enumerate(notebook.cells):
        cell["id"], cell["metadata"] = f"cell-{place:02d}", {}
        # Warnings of packages name their folders; ours are filtered where they are expected.
        cell["outputs"] = [one for one in cell.get("outputs", []) if one.get("name") != "stderr"]
        for output in cell["outputs"]:
            output.get("metadata", {}).clear()
        if cell["cell_type"] == "markdown":
            del cell["outputs"]
    notebook["metadata"] = METADATA
    return notebook


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        if path.stem in sys.argv[1:] or len(sys.argv) == 1:
            nbformat.write(run(path), path)
            print(path.name, f"{path.stat().st_size / 1024:.0f} KiB")
