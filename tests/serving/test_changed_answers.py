"""A card whose kind of answer was changed."""

import json
import shutil

import pytest

import albert_tf
from albert_tf.asking.answers import ANSWERS
from albert_tf.base.errors import InputError


@pytest.mark.slow
@pytest.mark.parametrize("model_format", ["saved_model", "litert"])
def test_answer_that_the_model_does_not_give_is_refused(export_classifier, tmp_path, model_format):
    if model_format == "litert":
        pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
    folder = shutil.copytree(export_classifier(model_format), tmp_path / "served")
    [card] = folder.rglob("model_card.json")
    values = json.loads(card.read_text(encoding="utf-8"))
    for name in [*ANSWERS, "other"]:
        thresholds = {"thresholds": [0.5, 0.5]} if name == "labels" else {}
        card.write_text(json.dumps({**values, "answer": name, **thresholds}), encoding="utf-8")
        if name == "label" or (name == "labels" and model_format == "litert"):  # whose outputs look the same
            assert albert_tf.load(folder).predict(["좋다"])
            continue
        with pytest.raises(InputError) as error:
            albert_tf.load(folder).predict(["좋다"])
        assert "\n" not in str(error.value)
