"""Settings beside the weights in folders of transformers are obeyed, told or refused, and none is passed over."""

import inspect
import json
import warnings

import numpy as np
import pytest
from huggingface_conversion import SIZES, edit_config, randomized, to_ours, to_theirs
from random_models import write_ours
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.finetuning import Classification
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.interchange import foreign_config
from albert_tf.interchange.conversion import as_ours
from albert_tf.interchange.huggingface import find_family, read_config
from albert_tf.interchange.tokenizers import settings as tokenizer_settings
from albert_tf.interchange.tokenizers.sentencepiece import ALBERT
from albert_tf.interchange.tokenizers.settings import BERT
from albert_tf.interchange.tokenizers.unigram import XLM_ROBERTA
from albert_tf.serving.exporting import export_model
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

WORDS = "가나다라마바사아자차카타"
PIECES = [*SPECIAL_TOKENS, *WORDS, *(f"##{word}" for word in WORDS), "."]
TEXTS = ["가 나다 라", "마", "가 나 다 라 마 바 사 아 자 차 카 타 가 나 다 라 마 바 사"]
PAIRS = list(zip(TEXTS, TEXTS[::-1]))
TINY = {"vocab_size": len(PIECES), "num_hidden_layers": 2, **SIZES}
TOKENIZER = {"tokenizer_class": "BertTokenizer", "strip_accents": False}


def save(theirs, folder, config=None, **settings):
    """Writes a model of theirs with a tokenizer, and returns the folder."""
    randomized(theirs).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({**TOKENIZER, **settings}))
    edit_config(folder, **(config or {}))
    return folder


def save_bert(transformers, folder, class_name="BertModel", sizes=(), config=None, **settings):
    theirs = getattr(transformers, class_name)(transformers.BertConfig(**{**TINY, **dict(sizes)}))
    return save(theirs, folder, config, **settings), theirs


def load_silently(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return albert_tf.load(folder)


def their_states(transformers, theirs, folder, texts, length):
    import torch

    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    batch = tokenizer(texts, truncation=True, max_length=length, padding=True, return_tensors="pt")
    with torch.no_grad():
        return theirs(**batch), batch["attention_mask"].numpy()


def test_length_that_a_tokenizer_names_is_obeyed_and_another_side_refused(transformers, tmp_path):
    folder, _ = save_bert(transformers, tmp_path / "short", "BertForSequenceClassification", model_max_length=10)
    assert load_silently(folder).max_seq_length == 10
    folder, _ = save_bert(transformers, tmp_path / "encoder", "BertForMaskedLM", model_max_length=12)
    assert load_silently(folder).max_seq_length == 12
    (folder / "tokenizer_config.json").write_text(json.dumps({**TOKENIZER, "model_max_length": 10**30}))
    assert load_silently(folder).max_seq_length == 64
    for settings, message in (
        ({"truncation_side": "left"}, "truncation_side=left cuts the beginnings of long texts off"),
        ({"model_max_length": "long"}, "model_max_length must be a number from 1. Received: 'long'"),
    ):
        (folder / "tokenizer_config.json").write_text(json.dumps({**TOKENIZER, **settings}))
        with pytest.raises(InputError, match=message):
            albert_tf.load(folder)


def test_classifier_goes_out_with_its_own_length_and_windows_are_told(transformers, tmp_path):
    config = tiny_config(vocab_size=len(PIECES), num_hidden_layers=2, embedding_size=16, sharing="none")
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(PIECES))
    for stride in (None, 4):
        task = Classification(config, ("a", "b", "c"), DataFiles(text_column="text"), doc_stride=stride)
        settings = {"objective": "Classification", "max_seq_length": 9, **task.settings()}
        place = tmp_path / str(stride)
        place.mkdir()
        folder, _ = write_ours(place / "ours", config, "classify", tokenizer, settings)
        sentences = to_theirs(folder, place / "theirs")
        assert transformers.AutoTokenizer.from_pretrained(place / "theirs").model_max_length == 9
        told = [each for each in sentences if "transformers has no windows" in each]
        assert len(told) == (stride is not None)
        assert not told or "texts of more than 9 pieces are read in windows here (doc_stride=4)" in told[0]


def test_what_changes_answers_is_told_where_a_folder_is_used(transformers, tmp_path):
    folder, _ = save_bert(transformers, tmp_path / "theirs", "BertForSequenceClassification", {"num_labels": 3})
    load_silently(folder)
    config = json.loads((folder / "config.json").read_text())
    for changes, settings, message in (
        ({"id2label": {"1": "a", "2": "b", "3": "c"}}, {}, "id2label does not name the 3 outputs"),
        ({}, {"strip_accents": None}, "composed Hangul of the vocabulary is never matched"),
        ({"layer_scale": 2.0}, {}, r"config\.json: ignored, because they are unknown: layer_scale"),
    ):
        (folder / "config.json").write_text(json.dumps({**config, **changes}))
        (folder / "tokenizer_config.json").write_text(json.dumps({**TOKENIZER, **settings}))
        with pytest.warns(UserWarning, match=message) as told, as_ours(str(folder)):
            assert len(told) == 1


@pytest.mark.parametrize(
    ("config", "is_probability"),
    [
        ({}, True),
        ({"problem_type": "regression"}, False),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "5"}}, False),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"}, True),
    ],
)
def test_head_of_one_output_answers_as_there(transformers, tmp_path, config, is_probability):
    class_name = "BertForSequenceClassification"
    folder, theirs = save_bert(transformers, tmp_path / "theirs", class_name, {"num_labels": 1}, config)
    logits = their_states(transformers, theirs, folder, PAIRS, 64)[0].logits[:, 0].double()
    expected = logits.sigmoid() if is_probability else logits
    model = load_silently(folder)
    np.testing.assert_allclose([each["score"] for each in model.predict(PAIRS)], expected, rtol=2e-5)
    to_ours(folder, tmp_path / "ours")
    to_theirs(tmp_path / "ours", tmp_path / "back")
    again = json.loads((tmp_path / "back" / "config.json").read_text())
    assert (again["problem_type"] == "regression") is not is_probability
    edit_config(folder, sentence_transformers={"activation_fn": "torch.nn.modules.activation.Tanh"})
    with pytest.raises(InputError, match=r"the activation torch\.nn\.modules\.activation\.Tanh of a cross-enc"):
        albert_tf.load(folder)


def gpt2(transformers, class_name):
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": len(PIECES), "pad_token_id": 0}
    return getattr(transformers, class_name)(transformers.GPT2Config(**sizes, bos_token_id=2, eos_token_id=3))


def xlm(transformers, class_name):
    sizes = {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 64, "vocab_size": len(PIECES)}
    return getattr(transformers, class_name)(transformers.XLMConfig(**sizes, n_langs=1))


@pytest.mark.parametrize(
    ("make", "class_name", "head"),
    [
        (gpt2, "GPT2ForSequenceClassification", "score.weight"),
        (xlm, "XLMForSequenceClassification", "sequence_summary.summary.weight"),
    ],
)
def test_head_that_nobody_reads_is_told(transformers, tmp_path, make, class_name, head):
    folder = save(make(transformers, class_name), tmp_path / "theirs")
    with pytest.warns(UserWarning, match=rf"{class_name} has a head that albert_tf doesn't know \(.*{head}"):
        model = albert_tf.load(folder)
    with pytest.raises(InputError, match=rf"has a head that can't be used for prediction: {class_name} has a head"):
        model.predict(TEXTS)


def test_discriminator_of_six_heads_needs_no_generator(transformers, tmp_path):
    config = transformers.ElectraConfig(**{**TINY, "embedding_size": 8, "hidden_size": 24, "num_attention_heads": 6})
    model = load_silently(save(transformers.ElectraForPreTraining(config), tmp_path / "theirs"))
    assert model.abilities == ("find_replaced", "encode", "similarity")
    assert len(model.find_replaced(["가 나 다."])[0]) == 4


MODULES = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling"), ("2", "2_Normalize", "Normalize")]


def sentence_model(transformers, folder, pooling, modules=MODULES, **files):
    folder, theirs = save_bert(transformers, folder)
    listed = [
        {"idx": int(number), "name": number, "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, path, kind in modules
    ]
    files = {"modules": listed, "1_Pooling/config": {"word_embedding_dimension": 16, **pooling}, **files}
    (folder / "1_Pooling").mkdir()
    for name, values in files.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    return folder, theirs


@pytest.mark.parametrize(
    ("pooling", "modules"),
    [
        (
            {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False},
            MODULES,
        ),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, MODULES[:2]),
        ({"embedding_dimension": 16, "pooling_mode": "mean", "include_prompt": True}, MODULES[:2]),
    ],
)
def test_vectors_of_sentence_transformers_are_made_as_there(transformers, tmp_path, pooling, modules):
    length = {"sentence_bert_config": {"max_seq_length": 8, "do_lower_case": False}}
    folder, theirs = sentence_model(transformers, tmp_path / "theirs", pooling, modules, **length)
    states, mask = their_states(transformers, theirs, folder, TEXTS, 8)
    states = states.last_hidden_state.numpy()
    if pooling.get("pooling_mode_cls_token"):
        expected = states[:, 0]
    else:
        expected = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    if len(modules) == 3:
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    to_ours(folder, tmp_path / "ours")
    loaded = [load_silently(folder), albert_tf.load(tmp_path / "ours")]
    if len(modules) == 3:
        export_model(str(tmp_path / "ours"), str(tmp_path / "export"))
        loaded.append(albert_tf.load(tmp_path / "export"))
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    for model in loaded:
        assert model.max_seq_length == 8 and model.learnt_to_compare
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="this model was not taught")
            found = model.similarity([(TEXTS[0], TEXTS[1])])
        np.testing.assert_allclose(found, [unit[0] @ unit[1]], atol=2e-5)
        np.testing.assert_allclose(model.encode(TEXTS), expected, atol=2e-5)


@pytest.mark.parametrize(
    ("pooling", "modules", "files", "message"),
    [
        ({"pooling_mode_max_tokens": True}, MODULES, {}, "the pooling pooling_mode_max_tokens is none of cls and mean"),
        ({"pooling_mode": "mean"}, [*MODULES[:2], ("2", "2_Dense", "Dense")], {}, "Transformer, Pooling, Dense; only"),
        (
            {"pooling_mode": "mean"},
            MODULES,
            {"config_sentence_transformers": {"prompts": {"query": "q: "}, "default_prompt_name": "query"}},
            "default_prompt_name='query' is not known",
        ),
    ],
)
def test_vectors_that_cannot_be_read_are_told(transformers, tmp_path, pooling, modules, files, message):
    folder, _ = sentence_model(transformers, tmp_path / "theirs", pooling, modules, **files)
    with pytest.warns(UserWarning, match=f"vectors are not those of sentence-transformers.*{message}"):
        model = albert_tf.load(folder)
    assert not model.learnt_to_compare and model.pooling == "mean"


# A legal value for each kind of key that configs of the eight families have, where doubling the default makes none.
OTHER_VALUES = {
    "architectures": ["OtherModel"],
    "dtype": "float16",
    "model_type": "t5",
    "id2label": {"0": "a", "1": "b"},
    "label2id": {"a": 0, "b": 1},
    "problem_type": "regression",
    "classifier_dropout": 0.3,
    "hidden_act": "relu",
    "activation": "relu",
    "activation_function": "relu",
    "summary_type": "mean",
    "summary_activation": "tanh",
    "_name_or_path": "a/b",
    "transformers_version": "4.0",
    "num_hidden_groups": 2,
    "n_inner": 5,
}
# Keys of heads, which `find_head` obeys: test_huggingface_labels_and_tokenizers and the tests above show how.
OF_HEADS = {"architectures", "id2label", "problem_type"}


def other_value(key, value):
    if key in OTHER_VALUES:
        return OTHER_VALUES[key]
    if isinstance(value, bool):
        return not value
    return 7 if value is None else value / 2 if isinstance(value, float) and value else value * 2 + 2


def outcome(values, base, key, family):
    """Returns what becomes of a key: how its value shows in our config, or why it changes nothing."""
    try:
        family = find_family(values, "config.json")
        found = read_config(values, family, (), "config.json")
    except InputError as error:
        return f"refused: {error}"
    if key in foreign_config.unknown_keys(values, family.config_keys):
        return None
    if found != base or key in OF_HEADS:
        return "obeyed"
    return {**foreign_config.WITHOUT_EFFECT, **family.without_effect}.get(key)


def test_every_key_of_every_family_has_an_outcome(transformers):
    names = ("Albert", "Bert", "Roberta", "XLMRoberta", "Electra", "DistilBert", "GPT2", "XLM")
    num_walked, without = 0, []
    for name in names:
        given = getattr(transformers, f"{name}Config")().to_dict()
        given |= {"n_langs": 3} if name == "XLM" else {}  # of one language there are no embeddings
        family = find_family(given, "config.json")
        base = read_config(given, family, (), "config.json")
        assert not foreign_config.unknown_keys(given, family.config_keys)
        for key, value in given.items():
            num_walked += 1
            if outcome({**given, key: other_value(key, value)}, base, key, family) is None:
                without.append(f"{name}: {key}")
    assert not without
    assert num_walked >= 8 * 25
    # A control: of a key that nobody knows there is no outcome.
    assert outcome({**given, "layer_scale": 2.0}, base, "layer_scale", family) is None


def test_every_key_of_a_tokenizer_has_an_outcome(transformers, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    tokenizer = transformers.BertTokenizer(str(tmp_path / "vocab.txt"), strip_accents=False, model_max_length=64)
    tokenizer.save_pretrained(tmp_path / "saved")
    written = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    of_all = {*written, "truncation_side", "padding_side", "split_special_tokens", "added_tokens_decoder", "max_length"}
    num_walked = 0
    for kind in (BERT, ALBERT, XLM_ROBERTA):
        own = set(inspect.signature(getattr(transformers, kind.classes[0]).__init__).parameters)
        keys = own - {"self", "vocab", "kwargs"} | (of_all if kind is BERT else set())
        assert not keys - {*kind.only, *kind.read, *tokenizer_settings._READ, *tokenizer_settings.WITHOUT_EFFECT}
        num_walked += len(keys)
    assert num_walked >= 37 and all(tokenizer_settings.WITHOUT_EFFECT.values())


def test_what_generation_config_says_is_told_of_models_that_generate(transformers, tmp_path):
    plain = set(transformers.GenerationConfig().to_dict())
    assert set(foreign_config._NOT_OF_CHOICES) <= plain | {"_from_model_config"}
    folder = save(gpt2(transformers, "GPT2LMHeadModel"), tmp_path / "theirs")
    load_silently(folder)
    for key in sorted(plain - set(foreign_config._NOT_OF_CHOICES)):
        (folder / "generation_config.json").write_text(json.dumps({key: 0.5}))
        [told] = foreign_config.of_generation(str(folder), tiny_config(is_causal=True, pooler=False))
        assert f"{key}=0.5" in told
        assert not foreign_config.of_generation(str(folder), tiny_config())
    with pytest.warns(UserWarning, match=r"generation_config\.json is not obeyed; pass what is meant to generate: "):
        albert_tf.load(folder)


def test_classifier_without_the_pooler_that_it_reads_is_refused(transformers, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder, _ = save_bert(transformers, tmp_path / "theirs", "BertForSequenceClassification")
    weights = load_file(folder / "model.safetensors")
    save_file({name: value for name, value in weights.items() if "pooler" not in name}, folder / "model.safetensors")
    with pytest.raises(InputError, match="lacks encoder/pooler/"):
        albert_tf.load(folder)
