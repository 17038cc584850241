"""Folders of Hugging Face's transformers, in and out: the same numbers, bit-equal round trips, labels, tokenizers."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
from random_models import (
    CLASSES,
    CONFIGS,
    assert_same_variables,
    config_in,
    random_inputs,
    random_model,
    read_variables,
    write_ours,
)
from tiny_config import tiny_config

import albert_tf
from albert_tf import modeling
from albert_tf.errors import InputError
from albert_tf.finetuning import Classification, Entities
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 64}
TINY_ALBERT = {"vocab_size": 30, "embedding_size": 8, "num_hidden_layers": 3, **SIZES}
TINY_BERT = {"vocab_size": 30, "num_hidden_layers": 2, **SIZES}


@pytest.fixture
def transformers():
    """The library; it needs torch to compute anything."""
    pytest.importorskip("torch", reason="compares with transformers, which needs torch")
    return pytest.importorskip("transformers", reason="compares with transformers")


def to_ours(source, target, **options):
    return convert_checkpoint("huggingface", "albert_tf", str(source), str(target), ReadOptions(**options))


def to_theirs(source, target, **options):
    return convert_checkpoint("albert_tf", "huggingface", str(source), str(target), ReadOptions(**options))


def randomized(model):
    """Gives a torch model weights far from those that it begins with, and returns it."""
    import torch

    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0, 0.3)
    return model.eval()


def torch_inputs(inputs, choices=0):
    import torch

    names = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    arrays = {theirs: inputs[ours].numpy() for ours, theirs in names.items()}
    if choices:
        arrays = {name: np.stack([array] * choices, 1) for name, array in arrays.items()}
    return {name: torch.tensor(array).long() for name, array in arrays.items()}


def assert_close(ours, theirs, name=""):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-5, atol=1e-5, err_msg=name)


# Each of their classes, our task, and their output of each of ours.
HEADS = {
    "Model": (None, {"sequence_output": "last_hidden_state", "pooled_output": "pooler_output"}),
    "ForMaskedLM": (None, {"masked_lm_logits": "logits"}),
    "ForSequenceClassification": ("classify", {"logits": "logits"}),
    "ForTokenClassification": ("tag", {"logits": "logits"}),
    "ForQuestionAnswering": ("squad", {"start_logits": "start_logits", "end_logits": "end_logits"}),
    "ForMultipleChoice": ("race", {"logits": "logits"}),
}
PRE_TRAINING = {
    "Albert": {"masked_lm_logits": "prediction_logits", "sentence_order_logits": "sop_logits"},
    "Bert": {"masked_lm_logits": "prediction_logits", "sentence_order_logits": "seq_relationship_logits"},
}
OUR_CLASSES = {
    None: modeling.AlbertForPreTraining,
    "classify": modeling.AlbertForSequenceClassification,
    "tag": modeling.AlbertForTokenClassification,
    "squad": modeling.AlbertForQuestionAnswering,
    "race": modeling.AlbertForMultipleChoice,
}


def assert_same_numbers(ours, theirs, class_name, family):
    task, outputs = HEADS.get(class_name) or (None, PRE_TRAINING[family])
    inputs = random_inputs()
    if task == "race":
        our_inputs = {name: tf.stack([value] * 2, axis=1) for name, value in inputs.items()}
        found, expected = ours(our_inputs), theirs(**torch_inputs(inputs, choices=2))
    else:
        found, expected = ours(inputs), theirs(**torch_inputs(inputs))
    for our_name, their_name in outputs.items():
        assert_close(found[our_name], getattr(expected, their_name), our_name)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["Albert", "Bert"])
@pytest.mark.parametrize("class_name", [*HEADS, "ForPreTraining"])
def test_their_models_compute_the_same_here(transformers, tmp_path, family, class_name):
    config = getattr(transformers, f"{family}Config")(**(TINY_ALBERT if family == "Albert" else TINY_BERT))
    if class_name in ("ForSequenceClassification", "ForTokenClassification"):
        config.num_labels = 3
    theirs = randomized(getattr(transformers, f"{family}{class_name}")(config))
    theirs.save_pretrained(tmp_path / "theirs")
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours")
    task, _ = HEADS.get(class_name) or (None, None)
    ours = OUR_CLASSES[task].from_pretrained(tmp_path / "ours", verbose=False)
    assert_same_numbers(ours, theirs, class_name, family)
    assert not [sentence for sentence in sentences if "left" in sentence]


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"])
def test_their_gelu_is_not_taken_for_ours(transformers, tmp_path, activation):
    config = transformers.AlbertConfig(**TINY_ALBERT, hidden_act=activation, num_hidden_groups=3, inner_group_num=2)
    theirs = randomized(transformers.AlbertForPreTraining(config))
    theirs.save_pretrained(tmp_path / "theirs")
    to_ours(tmp_path / "theirs", tmp_path / "ours")
    ours = modeling.AlbertForPreTraining.from_pretrained(tmp_path / "ours", verbose=False)
    assert_same_numbers(ours, theirs, "ForPreTraining", "Albert")


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_our_models_compute_the_same_there_and_come_back_bit_by_bit(transformers, tmp_path, name):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS[name])
    to_theirs(folder, tmp_path / "theirs")
    theirs, report = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    assert_same_numbers(ours, theirs.eval(), "ForPreTraining", "Bert" if name == "bert" else "Albert")
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours)
    theirs.save_pretrained(tmp_path / "saved again")
    to_ours(tmp_path / "saved again", tmp_path / "back again")
    assert_same_variables(tmp_path / "back again", ours)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["albert", "bert"])
@pytest.mark.parametrize("task", ["classify", "score", "tag", "squad", "race"])
def test_our_heads_compute_the_same_there_and_come_back_bit_by_bit(transformers, tmp_path, task, family):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS[family], task)
    to_theirs(folder, tmp_path / "theirs", task=task)
    class_name = {**{kind: name for name, (kind, _) in HEADS.items()}, "score": "ForSequenceClassification"}[task]
    theirs = getattr(transformers, f"AutoModel{class_name}").from_pretrained(tmp_path / "theirs")
    assert_same_numbers(ours, theirs.eval(), class_name, family.capitalize())
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours)


def test_fields_that_they_do_not_know_come_back(tmp_path):
    config = tiny_config(position_initializer="sinusoidal", classifier_pooling="mean", layer_norm_eps=1e-6)
    folder, _ = write_ours(tmp_path / "ours", config)
    to_theirs(folder, tmp_path / "theirs")
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert config_in(tmp_path / "back") == config


def test_heads_come_back_without_their_library(tmp_path):
    for task in ("classify", "tag", "squad", "race", None):
        folder, ours = write_ours(tmp_path / f"ours {task}", CONFIGS["albert"], task)
        to_theirs(folder, tmp_path / f"theirs {task}", task=task)
        to_ours(tmp_path / f"theirs {task}", tmp_path / f"back {task}")
        assert_same_variables(tmp_path / f"back {task}", ours)


def test_head_that_they_do_not_have_is_left_and_named(tmp_path):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS["albert"], "squad_v2")
    sentences = to_theirs(folder, tmp_path / "theirs")
    assert "left, because the format has no place for it: head" in sentences
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours, but=("head/",))


def test_head_whose_task_nobody_knows_is_asked_for(tmp_path):
    folder, _ = write_ours(tmp_path / "ours", CONFIGS["albert"], "classify")
    with pytest.raises(InputError, match="does not say what its head is for; name that with --task"):
        to_theirs(folder, tmp_path / "theirs")


@pytest.mark.parametrize("sharing", ["attention", "ffn"])
def test_sharing_of_one_part_can_not_be_said(tmp_path, sharing):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(num_hidden_layers=2, sharing=sharing))
    with pytest.raises(InputError, match=f"--to=huggingface can't say sharing={sharing}"):
        to_theirs(folder, tmp_path / "theirs")


def edit_config(folder, **changes):
    path = folder / "config.json"
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


@pytest.fixture
def theirs(tmp_path):
    """A folder as transformers writes it."""
    folder, _ = write_ours(tmp_path / "first", CONFIGS["albert"])
    to_theirs(folder, tmp_path / "theirs")
    return tmp_path / "theirs"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "roberta"}, "model_type=roberta can't be converted; albert and bert can"),
        ({"model_type": ["albert"]}, "model_type="),
        ({"hidden_act": "silu"}, "hidden_act=silu can't be converted"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type=relative_key is not"),
        ({"is_decoder": True}, "is_decoder=True is not"),
        ({"hidden_size": 18}, r"has shape \[16, 8\], and by the config beside it it should have \[18, 8\]"),
        ({"num_hidden_groups": 2, "num_hidden_layers": 2}, r"albert_layer_groups\.1\.\S+ is missing"),
        ({"hidden_dropout_prob": 10**400}, "hidden_dropout_prob must be a number that fits"),
    ],
)
def test_config_of_another_model_is_refused(theirs, tmp_path, changes, message):
    edit_config(theirs, **changes)
    with pytest.raises(InputError, match=message):
        to_ours(theirs, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_pickle_is_refused_unread(theirs, tmp_path):
    (theirs / "model.safetensors").rename(theirs / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"is a pickle, .* never read; .* safe_serialization=True"):
        to_ours(theirs, tmp_path / "ours")
    (theirs / "pytorch_model.bin").unlink()
    with pytest.raises(InputError, match=r"there is no model\.safetensors in"):
        to_ours(theirs, tmp_path / "ours")


def rewrite(folder, change):
    """Writes the weights of a folder again, changed, with the format's own library."""
    numpy = pytest.importorskip("safetensors.numpy", reason="writes with the format's own library")
    path = str(folder / "model.safetensors")
    weights = {name: array.copy() for name, array in numpy.load_file(path).items()}
    change(weights)
    numpy.save_file(weights, path)
    return weights


def test_missing_misshapen_and_surplus_weights_are_named(theirs, tmp_path):
    name = "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"
    rewrite(theirs, lambda weights: weights.update({"lm_head.other": np.float32([1])}))
    sentences = to_ours(theirs, tmp_path / "ours")
    assert "left, because it is no part of the model: lm_head.other" in sentences
    surplus = name.replace("groups.0", "groups.1")
    rewrite(theirs, lambda weights: weights.update({surplus: weights[name]}))
    with pytest.raises(InputError, match=f"{surplus} is no part of the encoder"):
        to_ours(theirs, tmp_path / "other")
    rewrite(theirs, lambda weights: [weights.pop(surplus), weights.update({name: np.ones([3, 16], np.float32)})])
    with pytest.raises(InputError, match=rf"{name} has shape \[3, 16\], and .* it should have \[16, 16\]"):
        to_ours(theirs, tmp_path / "other")
    rewrite(theirs, lambda weights: weights.pop(name))
    with pytest.raises(InputError, match=f"the variable {name} is missing"):
        to_ours(theirs, tmp_path / "other")


def test_projection_that_changes_nothing_is_left_out_and_any_other_refused(tmp_path):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS["as wide as its layers"])
    to_theirs(folder, tmp_path / "theirs")
    name = "albert.encoder.embedding_hidden_mapping_in.weight"
    weights = rewrite(tmp_path / "theirs", lambda weights: None)
    np.testing.assert_array_equal(weights[name], np.eye(16))
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours)
    rewrite(tmp_path / "theirs", lambda weights: weights.update({name: weights[name] * np.float32(1.5)}))
    with pytest.raises(InputError, match="embedding_hidden_mapping_in changes embeddings that have the hidden size"):
        to_ours(tmp_path / "theirs", tmp_path / "other")


def test_untied_masked_language_model_is_refused(theirs, tmp_path):
    table = "albert.embeddings.word_embeddings.weight"
    rewrite(theirs, lambda weights: weights.update({"predictions.decoder.weight": weights[table].copy()}))
    to_ours(theirs, tmp_path / "ours")
    rewrite(theirs, lambda weights: weights.update({"predictions.decoder.weight": weights[table] + 1}))
    with pytest.raises(InputError, match="is not the embedding table"):
        to_ours(theirs, tmp_path / "other")


def test_names_of_older_versions_are_known(theirs, tmp_path):
    def age(weights):
        for name in list(weights):
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            if not name.startswith(("predictions", "sop")):
                weights[old.removeprefix("albert.")] = weights.pop(name)
        weights["embeddings.position_ids"] = np.arange(64)[None]

    to_ours(theirs, tmp_path / "ours")
    rewrite(theirs, age)
    sentences = to_ours(theirs, tmp_path / "old")
    assert "left, because it follows from the config: albert.embeddings.position_ids" in sentences
    assert_same_variables(tmp_path / "old", read_variables(tmp_path / "ours"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_precisions_become_float32(theirs, tmp_path, dtype):
    kind = tf.as_dtype(dtype).as_numpy_dtype
    before = rewrite(theirs, lambda weights: weights.update({k: v.astype(kind) for k, v in weights.items()}))
    to_ours(theirs, tmp_path / "ours")
    found = read_variables(tmp_path / "ours")["encoder/pooler/bias"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, before["albert.pooler.bias"].astype(np.float32))


def split(folder):
    """Makes two shards and an index of the one file of a folder."""
    numpy = pytest.importorskip("safetensors.numpy", reason="writes with the format's own library")
    weights = numpy.load_file(str(folder / "model.safetensors"))
    names = sorted(weights)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in shards.items():
        numpy.save_file({name: weights[name] for name in part}, str(folder / file))
    (folder / "model.safetensors").unlink()
    places = {name: file for file, part in shards.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return places


def test_shards_are_read_as_one_file(theirs, tmp_path):
    to_ours(theirs, tmp_path / "one")
    split(theirs)
    to_ours(theirs, tmp_path / "two")
    assert_same_variables(tmp_path / "two", read_variables(tmp_path / "one"))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("../theirs/model-00001-of-00002.safetensors", "which is no file in"),
        ("/etc/passwd", "which is no file in"),
        ("..", "which is no file in"),
        ("model.safetensors.index.json", "which is no safetensors file"),
        ("pytorch_model.bin", "which is no safetensors file"),
        ("gone.safetensors", r"can't read .*gone\.safetensors"),
        (7, "which is no file in"),
        (None, "which is no file in"),
        ({"a": 1}, "which is no file in"),
    ],
)
def test_index_leads_to_no_file_elsewhere(theirs, tmp_path, file, message):
    places = split(theirs)
    index = theirs / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {**places, next(iter(places)): file}}))
    with pytest.raises(InputError, match=message):
        to_ours(theirs, tmp_path / "ours")


def test_index_that_names_the_wrong_shard_is_refused(theirs, tmp_path):
    places = split(theirs)
    files = sorted(set(places.values()))
    name = next(name for name, file in places.items() if file == files[0])
    index = theirs / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {**places, name: files[1]}}))
    with pytest.raises(InputError, match=f"says that '{name}' is in {files[1]}, which does not hold it"):
        to_ours(theirs, tmp_path / "ours")
    index.write_text(json.dumps({"weight_map": []}))
    with pytest.raises(InputError, match="has no weight_map"):
        to_ours(theirs, tmp_path / "ours")


def test_labels_of_a_fine_tuned_folder_go_there_and_come_back(tmp_path, sample_tokenizer):
    config = tiny_config(len(sample_tokenizer.vocabulary))
    task = Classification(config, ("부정", "중립", "긍정"))
    settings = {"objective": "Classification", "max_seq_length": 32, "command": "run_classifier", **task.settings()}
    folder, _ = write_ours(tmp_path / "ours", config, "classify", sample_tokenizer, settings)
    to_theirs(folder, tmp_path / "theirs")
    written = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert written["id2label"] == {"0": "부정", "1": "중립", "2": "긍정"}
    assert written["label2id"] == {"부정": 0, "중립": 1, "긍정": 2}
    sentences = to_ours(tmp_path / "theirs", tmp_path / "back")
    assert "albert_tf.load answers from it; run_settings.json says how" in sentences
    texts = ["정말 재미있다", "시간이 아깝다"]
    expected = albert_tf.load(folder).predict(texts)
    assert albert_tf.load(tmp_path / "back").predict(texts) == expected
    # Without what we wrote there for ourselves, as in a folder of theirs.
    edit_config(tmp_path / "theirs", albert_tf_settings=None)
    to_ours(tmp_path / "theirs", tmp_path / "of theirs")
    assert albert_tf.load(tmp_path / "of theirs").predict(texts) == expected


def test_tags_are_read_where_they_are_in_the_order_of_ours(tmp_path, sample_tokenizer):
    config = tiny_config(len(sample_tokenizer.vocabulary))
    task = Entities(config, ("PS", "LC"))
    settings = {"objective": "Entities", "max_seq_length": 32, **task.settings()}
    folder, _ = write_ours(tmp_path / "ours", config, "tag", sample_tokenizer, settings)
    to_theirs(folder, tmp_path / "theirs")
    edit_config(tmp_path / "theirs", albert_tf_settings=None)
    assert json.loads((tmp_path / "theirs" / "config.json").read_text())["id2label"]["1"] == "B-PS"
    to_ours(tmp_path / "theirs", tmp_path / "back")
    text = ["이순신은 서울에서 태어났다"]
    assert albert_tf.load(tmp_path / "back").predict(text) == albert_tf.load(folder).predict(text)
    labels = {"0": "B-PS", "1": "I-PS", "2": "B-LC", "3": "I-LC", "4": "O"}
    edit_config(tmp_path / "theirs", id2label=labels)
    sentences = to_ours(tmp_path / "theirs", tmp_path / "other order")
    assert any("not for albert_tf.load: its labels are not O, and" in sentence for sentence in sentences)
    assert not (tmp_path / "other order" / "run_settings.json").exists()


@pytest.mark.slow
def test_questions_are_answered_without_a_pooler(transformers, tmp_path, sample_tokenizer):
    config = transformers.AlbertConfig(**{**TINY_ALBERT, "vocab_size": len(sample_tokenizer.vocabulary)})
    randomized(transformers.AlbertForQuestionAnswering(config)).save_pretrained(tmp_path / "theirs")
    sample_tokenizer.vocabulary.to_file(tmp_path / "theirs" / "vocab.txt")
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours", strip_accents=False)
    assert any(
        sentence.startswith("not in it, and so begun anew where it is needed: encoder/pooler") for sentence in sentences
    )
    [answer] = albert_tf.load(tmp_path / "ours").predict([("누가 왔나?", "어제 친구가 왔다.")])
    assert answer["text"] in "어제 친구가 왔다."


TEXTS = ["나는 어제 밥을 먹었다!", "ＡＢＣ Café ㅋㅋㅋ 2020년", "정말 재미있는 영화였다...", "한국어 漢字 mixed", ""]


@pytest.mark.slow
def test_their_tokenizer_gives_the_same_ids_for_ours(transformers, tmp_path, sample_tokenizer, sample_lines):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(len(sample_tokenizer.vocabulary)), None, sample_tokenizer)
    to_theirs(folder, tmp_path / "theirs")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for text in [*TEXTS, *sample_lines[:300]]:
        assert theirs(text)["input_ids"] == sample_tokenizer.encode(text).ids, text
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert KoreanWordPieceTokenizer.load(tmp_path / "back").to_dict() == sample_tokenizer.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("files", ["all", "vocabulary", "backend"])
def test_korean_albert_with_berts_tokenizer_converts_with_it(
    transformers, tmp_path, sample_lines, files, sample_tokenizer
):
    """Published with BertTokenizer(do_lower_case=True, strip_accents=False), and a table larger than the vocabulary."""
    size = len(sample_tokenizer.vocabulary)
    config = transformers.AlbertConfig(**{**TINY_ALBERT, "vocab_size": size + 8})
    randomized(transformers.AlbertForMaskedLM(config)).save_pretrained(tmp_path / "theirs")
    sample_tokenizer.vocabulary.to_file(tmp_path / "vocab.txt")
    theirs = transformers.BertTokenizer(str(tmp_path / "vocab.txt"), do_lower_case=True, strip_accents=False)
    theirs.save_pretrained(tmp_path / "theirs")
    if files != "backend":
        os.replace(tmp_path / "vocab.txt", tmp_path / "theirs" / "vocab.txt")
    if files == "vocabulary":
        (tmp_path / "theirs" / "tokenizer.json").unlink()
        settings = {"do_lower_case": True, "strip_accents": False, "tokenizer_class": "BertTokenizer"}
        (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps(settings))
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours")
    assert any("filled up with 8 [unused] pieces" in sentence for sentence in sentences)
    ours = KoreanWordPieceTokenizer.load(tmp_path / "ours")
    assert len(ours.vocabulary) == size + 8 == config_in(tmp_path / "ours").vocab_size
    for text in sample_lines[:300]:
        assert theirs(text)["input_ids"] == ours.encode(text).ids, text


def test_tokenizer_that_can_not_be_read_is_no_obstacle(theirs, tmp_path):
    (theirs / "spiece.model").write_bytes(b"sentencepiece")
    (theirs / "tokenizer.json").write_text(json.dumps({"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}))
    sentences = to_ours(theirs, tmp_path / "ours")
    assert any(sentence.startswith("no tokenizer: ") for sentence in sentences)
    assert (tmp_path / "ours" / "spiece.model").read_bytes() == b"sentencepiece"
    assert not (tmp_path / "ours" / "vocab.txt").exists()
    pieces = [*SPECIAL_TOKENS, *(f"##{number}" for number in range(25))]
    Vocabulary(pieces).to_file(tmp_path / "vocab.txt")
    to_ours(theirs, tmp_path / "with one", vocab_file=str(tmp_path / "vocab.txt"), do_lower_case=False)
    tokenizer = KoreanWordPieceTokenizer.load(tmp_path / "with one")
    assert tokenizer.to_dict()["lower_case"] is tokenizer.to_dict()["strip_accents"] is False


def test_vocabulary_larger_than_the_model_is_refused(theirs, tmp_path):
    Vocabulary([*SPECIAL_TOKENS, *(f"##{number}" for number in range(26))]).to_file(tmp_path / "vocab.txt")
    with pytest.raises(InputError, match="has 31 pieces, and the model 30; name the vocabulary"):
        to_ours(theirs, tmp_path / "ours", vocab_file=str(tmp_path / "vocab.txt"))


def test_random_models_differ_in_every_variable():
    """What the comparisons rest on: no two variables of a model are the same by accident."""
    model = random_model(CONFIGS["albert"])
    sums = [float(np.sum(value)) for value in model.get_weights()]
    assert len(set(sums)) == len(sums) and set(CLASSES) >= set(OUR_CLASSES)
