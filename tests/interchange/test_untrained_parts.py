"""What nothing has trained is told, and stays known in folders of ours."""

import json

import pytest
from random_models import CONFIGS, write_ours

from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.modeling.pretrained import read_untrained

POOLER = ["encoder/pooler/bias", "encoder/pooler/kernel"]


@pytest.mark.parametrize("target", ["albert_tf", "google"])
def test_untrained_pooler_is_told(tmp_path, target):
    folder, _ = write_ours(tmp_path / "ours", CONFIGS["albert"])
    assert not any("random" in each for each in convert_checkpoint("albert_tf", target, folder, str(tmp_path / "a")))
    (tmp_path / "ours" / "untrained.json").write_text(json.dumps({"untrained": [*POOLER, "of/no/variable"]}))
    sentences = convert_checkpoint("albert_tf", target, folder, str(tmp_path / "b"))
    assert "still random, because nothing has trained it: encoder/pooler" in sentences
    if target == "albert_tf":
        assert read_untrained(str(tmp_path / "b" / "model.ckpt-0")) == set(POOLER)
        assert not (tmp_path / "a" / "untrained.json").exists()
