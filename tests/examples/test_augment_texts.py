"""examples/augment_texts.py: a file of lines in, a table of copies out."""

import pathlib
import runpy
import sys

import pytest

from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.tasks.labelled_text import read_examples

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "augment_texts.py"
# The model reads 128 pieces, and its vocabulary lacks 곷.
LINES = ["주말에 가족과 함께 보기 좋은 영화였어요", "하곷 3000원!!", "좋은 " * 200 + "영화", "정말"]


@pytest.mark.slow
def test_copies_differ_from_each_other_and_follow_from_the_seed(tmp_path, monkeypatch):
    (tmp_path / "texts.txt").write_text("\n\n".join(LINES), encoding="utf-8")

    def copies(seed):
        given = {"input_file": tmp_path / "texts.txt", "output_file": tmp_path / "out.tsv", "num_copies": 20}
        flags = {**given, "replaced_share": 0.05, "random_seed": seed}
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *(f"--{name}={value}" for name, value in flags.items())])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        # As run_classifier.py --unlabelled_file reads it.
        rows = read_examples(str(tmp_path / "out.tsv"), DATASETS["nsmc"], needs_label=False)
        return ["".join(row.columns.values()) for row in rows]

    found = copies(1)
    assert found == copies(1) != copies(2)
    assert len(set(found)) == len(found) > 10 and not set(found) & {line.strip() for line in LINES}
    assert not any("[" in copy or "##" in copy or "곷" in copy for copy in found)
    assert {len(copy.split()) for copy in found} >= {6, 201}
