"""What nothing has trained is told, and stays known in folders of ours."""

import json

import pytest
from random_models import CONFIGS, write_ours

from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.modeling.pretrained import read_untrained
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

POOLER = ["encoder/pooler/bias", "encoder/pooler/kernel"]


@pytest.mark.parametrize("target", ["albert_tf", "google"])
def test_untrained_pooler_is_told(tmp_path, target):
    config = CONFIGS["albert"]
    pieces = [*SPECIAL_TOKENS, *(f"##{number}" for number in range(config.vocab_size - len(SPECIAL_TOKENS)))]
    folder, _ = write_ours(tmp_path / "ours", config, tokenizer=KoreanWordPieceTokenizer(Vocabulary(pieces)))
    assert not any("random" in each for each in convert_checkpoint("albert_tf", target, folder, str(tmp_path / "a")))
    (tmp_path / "ours" / "untrained.json").write_text(json.dumps({"untrained": [*POOLER, "of/no/variable"]}))
    sentences = convert_checkpoint("albert_tf", target, folder, str(tmp_path / "b"))
    assert "still random, because nothing has trained it: encoder/pooler" in sentences
    if target == "albert_tf":
        assert read_untrained(str(tmp_path / "b" / "model.ckpt-0")) >= set(POOLER)
        assert not (tmp_path / "a" / "untrained.json").exists()
