"""Folders of XLM-RoBERTa and KoBERT are converted with their SentencePiece models, and give the same ids."""

import collections
import itertools
import json
import random
import re

import numpy as np
import pytest
import sentencepiece
import sentencepiece_reference
import sentencepiece_training
from huggingface_conversion import METASPACE, edit_config, randomized, to_ours, to_theirs, unigram_json
from random_models import read_variables, write_ours
from test_fuzzed_folders import mutate_value, read_whole
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.finetuning.tasks.labelled_text import LabelledText, encode_and_count_cut
from albert_tf.finetuning.tasks.question_windows import WindowOptions, encode_questions
from albert_tf.finetuning.tasks.squad import Question
from albert_tf.interchange import huggingface
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizers.files import find_tokenizer
from albert_tf.interchange.tokenizers.unigram import XLM_ROBERTA_FILE
from albert_tf.tokenization import SentencePieceModel, load_tokenizer
from albert_tf.tokenization.model_inputs import pack_segments

XLM_ROBERTA = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1, "control_symbols": "", "user_defined_symbols": ""}
KOBERT = {"unk_id": 0, "pad_id": 1, "unk_piece": "[UNK]", "pad_piece": "[PAD]", "user_defined_symbols": ""}
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
TEXTS = [
    "나는 밥을 먹었다.",
    "",
    "  두 칸　ＦＵＬＬ ½ ㎏ ",
    "<mask>은 맛있다 <mask> </s>끝<s>",
    "ㅋㅋㅋ ㅠㅠ 재미ㄸㅓ 각",
    "Café İstanbul 1,000, 2010,",
    "뷁 龘 \u200b \x85a\x1cb\ufeff",
]


@pytest.fixture(scope="module")
def of_xlm_roberta(sample_lines) -> bytes:
    return sentencepiece_training.train_model(sample_lines, 2500, normalization_rule_name="nmt_nfkc", **XLM_ROBERTA)


@pytest.fixture(scope="module")
def of_kobert(sample_lines) -> bytes:
    return sentencepiece_training.train_model(sample_lines, 2500, normalization_rule_name="nmt_nfkc", **KOBERT)


def fairseq_pieces(content):
    """Returns the pieces and their scores in the order of fairseq's ids."""
    pieces = [(piece.text, piece.score) for piece in SentencePieceModel.from_bytes(content).pieces]
    return [*((name, 0.0) for name in SPECIAL[:4]), *pieces[3:], (SPECIAL[4], 0.0)]


def fairseq_ids(content, texts):
    """Returns the ids of fairseq and of transformers' XLMRobertaTokenizer in Python, version 4."""
    engine = sentencepiece.SentencePieceProcessor(model_proto=content)
    special = {**{name: number for number, name in enumerate(SPECIAL[:4])}, SPECIAL[4]: len(engine) + 1}

    def ids_of(part):
        return [special[part]] if part in special else [number + 1 if number else 3 for number in engine.encode(part)]

    parts = [re.split(f"({'|'.join(special)})", text) for text in texts]
    return [list(itertools.chain.from_iterable(map(ids_of, row))) for row in parts]


def tokenizer_json(content):
    pieces = fairseq_pieces(content)
    names = [name for name, _ in pieces]
    return unigram_json(
        SentencePieceModel.from_bytes(content),
        pieces,
        {name: (names.index(name), {"lstrip": name == "<mask>"}) for name in SPECIAL},
        (
            [],
            [
                {"type": "Strip", "strip_left": False, "strip_right": True},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
            ],
        ),
        METASPACE,
        ("<s>", "A0", "</s>", "</s>", "B0", "</s>"),
    )


@pytest.fixture
def released(tmp_path):
    """Makes a folder with the weights of a model with random weights, and no tokenizer."""

    def make(vocab_size, **changes):
        config = {"sharing": "none", "embedding_size": 16, "hidden_act": "gelu_erf", "num_hidden_layers": 2, **changes}
        folder, _ = write_ours(tmp_path / "random", tiny_config(vocab_size, **config))
        to_theirs(folder, tmp_path / "theirs")
        return tmp_path / "theirs"

    return make


@pytest.fixture
def xlm_roberta(released, of_xlm_roberta):
    """A folder of XLM-RoBERTa without tokenizer."""
    changes = {"model_type": "xlm-roberta", "classification_head": "dense_tanh", "position_offset": 2}
    return released(len(fairseq_pieces(of_xlm_roberta)), **changes, type_vocab_size=1, pooler=False)


def write_xlm_roberta(folder, content, files):
    if "model" in files:
        (folder / XLM_ROBERTA_FILE).write_bytes(content)
    if "json" in files:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(content)))
    if "class" in files:
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')


@pytest.mark.parametrize("files", ["model", "json", "model json class"])
def test_ids_are_those_of_fairseq_whichever_file_holds_the_pieces(xlm_roberta, of_xlm_roberta, tmp_path, files):
    write_xlm_roberta(xlm_roberta, of_xlm_roberta, files)
    sentences = to_ours(xlm_roberta, tmp_path / "ours")
    assert "tokenizer: SentencePiece with form=xlm-roberta" in sentences
    tokenizer = load_tokenizer(tmp_path / "ours")
    assert tokenizer.encode_ids(TEXTS).to_list() == fairseq_ids(of_xlm_roberta, TEXTS)
    assert [encoding.ids[1:-1] for encoding in tokenizer.encode_batch(TEXTS)] == fairseq_ids(of_xlm_roberta, TEXTS)
    ids = [tokenizer.vocabulary.id_of(f"[{name}]") for name in ("CLS", "PAD", "SEP", "UNK", "MASK")]
    assert ids == [0, 1, 2, 3, len(tokenizer) - 1]
    np.testing.assert_array_equal(
        read_variables(tmp_path / "ours")["encoder/embeddings/word_embeddings"],
        read_variables(tmp_path / "random")["encoder/embeddings/word_embeddings"],
        "no row has moved",
    )


def test_pairs_have_two_separators_wherever_they_are_put_together(xlm_roberta, of_xlm_roberta, tmp_path):
    write_xlm_roberta(xlm_roberta, of_xlm_roberta, "model")
    to_ours(xlm_roberta, tmp_path / "ours")
    tokenizer, texts = load_tokenizer(tmp_path / "ours"), ["나는 밥을 먹었다.", "영화"]
    first, second = fairseq_ids(of_xlm_roberta, texts)
    pair = [0, *first, 2, 2, *second, 2]
    encoding = tokenizer.encode(*texts)
    assert encoding.ids == pair
    assert encoding.segment_ids == [0] * (len(first) + 3) + [1] * (len(second) + 1)
    with pytest.raises(InputError, match="which stand for no part of a text"):
        encoding.span_of_pieces(len(first) + 1, len(first) + 1)
    segments = [tokenizer.encode_ids([text]) for text in texts]
    packed = pack_segments(segments, tokenizer.vocabulary, len(pair) + 1)
    assert packed["input_ids"].numpy().tolist() == [[*pair, 1]]
    assert packed["segment_ids"].numpy().tolist() == [[*encoding.segment_ids, 0]]
    for length in range(4, len(pair)):
        kept = [list(first), list(second)]
        shorter, longer = sorted(kept, key=len)  # as the library `tokenizers`, which leaves the odd piece to the longer
        if (room := length - 4) < len(first) + len(second):
            del shorter[room // 2 :]
            del longer[room - len(shorter) :]
        cut = pack_segments(segments, tokenizer.vocabulary, length)["input_ids"].numpy().tolist()
        assert cut == [[0, *kept[0], 2, 2, *kept[1], 2]]
    with pytest.raises(InputError, match="max_seq_length must be at least 4"):
        pack_segments(segments, tokenizer.vocabulary, 3)


def test_it_goes_back_with_the_same_ids(transformers, xlm_roberta, of_xlm_roberta, tmp_path):
    write_xlm_roberta(xlm_roberta, of_xlm_roberta, "json")
    to_ours(xlm_roberta, tmp_path / "ours")
    to_theirs(tmp_path / "ours", tmp_path / "back")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    ours = load_tokenizer(tmp_path / "ours")
    for text in TEXTS[:-1]:  # a control character is a space there, and nothing here
        assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode_ids([text]).to_list()[0], text
    pair = theirs("나는 밥을", "먹었다")
    assert pair["input_ids"] == ours.encode("나는 밥을", "먹었다").ids
    assert "token_type_ids" not in pair, "the table of segments has one row"
    to_ours(tmp_path / "back", tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").identity == ours.identity
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert [config[f"{name}_token_id"] for name in ("bos", "pad", "eos")] == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("model", "type", "BPE"), "holds no SentencePiece vocabulary"),
        (("model", "byte_fallback", True), "model.byte_fallback=true can't be kept"),
        (("model", "vocab", {"<s>": 0}), "model.vocab must hold pieces with their scores"),
        (("post_processor", "pair", []), r"post_processor doesn't put texts as XLM-RoBERTa does"),
        (
            ("normalizer", "normalizers", [{"type": "Lowercase"}]),
            "the step Lowercase gives other ids than albert_tf's tokenizer",
        ),
        (
            ("normalizer", "normalizers", [{"type": "Precompiled", "precompiled_charsmap": "?"}]),
            "the table of its normalizer is damaged",
        ),
        (
            ("pre_tokenizer", "type", "WhitespaceSplit"),
            "at most one Precompiled, and a Metaspace; this gives other ids",
        ),
        (("added_tokens", None, {"content": "<url>"}), "added_tokens holds '<url>', which is matched in texts"),
    ],
)
def test_other_tokenizers_of_unigrams_are_refused_by_name(xlm_roberta, of_xlm_roberta, tmp_path, change, message):
    values, (part, key, value) = tokenizer_json(of_xlm_roberta), change
    if key is None:
        values[part].append(value)
    else:
        values[part][key] = value
    (xlm_roberta / "tokenizer.json").write_text(json.dumps(values))
    (xlm_roberta / XLM_ROBERTA_FILE).write_bytes(of_xlm_roberta)
    sentences = to_ours(xlm_roberta, tmp_path / "ours")
    assert any(sentence.startswith("no tokenizer: ") and message in sentence for sentence in sentences), sentences


def test_model_that_contradicts_its_files_is_refused(xlm_roberta, of_xlm_roberta, of_kobert, tmp_path):
    write_xlm_roberta(xlm_roberta, of_xlm_roberta, "model json")
    sentences = to_ours(xlm_roberta, tmp_path / "flag", do_lower_case=True)
    assert any("`do_lower_case=True` contradicts the tokenizer's files" in sentence for sentence in sentences)
    values = tokenizer_json(of_xlm_roberta)
    values["model"]["vocab"][7:9] = values["model"]["vocab"][8:6:-1]
    (xlm_roberta / "tokenizer.json").write_text(json.dumps(values))
    sentences = to_ours(xlm_roberta, tmp_path / "pieces")
    assert any("have different pieces; leave the right one" in sentence for sentence in sentences)
    (xlm_roberta / "tokenizer.json").unlink()
    (xlm_roberta / XLM_ROBERTA_FILE).write_bytes(of_kobert)
    sentences = to_ours(xlm_roberta, tmp_path / "other")
    assert any("does not begin with <unk>, <s>, </s>, as XLM-RoBERTa's models do" in sentence for sentence in sentences)


@pytest.mark.slow
def test_damaged_tokenizer_costs_no_more_than_a_sentence(xlm_roberta, of_xlm_roberta):
    draw, values, results = random.Random(7), tokenizer_json(of_xlm_roberta), collections.Counter()
    pieces = values["model"].pop("vocab")
    for number in range(100):
        damaged = mutate_value(values, draw)
        if isinstance(damaged, dict) and isinstance(damaged.get("model"), dict):
            less = mutate_value(pieces[:2400], draw) if number % 4 == 0 else pieces
            damaged = {**damaged, "model": {"vocab": less, **damaged["model"]}}
        (xlm_roberta / "tokenizer.json").write_text(json.dumps(damaged))
        assert read_whole(huggingface, xlm_roberta) == "read"
        found = find_tokenizer(str(xlm_roberta), ReadOptions(), len(pieces), "huggingface")
        results[found.tokenizer is None] += 1
    assert results[True] > 10 and results[False] > 10


def test_flag_names_a_model_that_lies_elsewhere(xlm_roberta, of_xlm_roberta, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    write_xlm_roberta(tmp_path / "elsewhere", of_xlm_roberta, "model")
    to_ours(xlm_roberta, tmp_path / "ours", spm_model_file=str(tmp_path / "elsewhere" / XLM_ROBERTA_FILE))
    assert load_tokenizer(tmp_path / "ours").encode_ids(TEXTS).to_list() == fairseq_ids(of_xlm_roberta, TEXTS)


def test_byte_level_bpe_is_refused(xlm_roberta, tmp_path):
    values = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}}
    (xlm_roberta / "tokenizer.json").write_text(json.dumps(values))
    edit_config(xlm_roberta, model_type="roberta")
    sentences = to_ours(xlm_roberta, tmp_path / "ours")
    assert any("holds BPE, and neither WordPiece nor SentencePiece" in sentence for sentence in sentences), sentences
    (xlm_roberta / "tokenizer.json").rename(xlm_roberta / "vocab.json")
    (xlm_roberta / "merges.txt").write_text("#version: 0.2\n")
    sentences = to_ours(xlm_roberta, tmp_path / "merges")
    assert any("merges.txt holds BPE, and neither" in sentence for sentence in sentences), sentences


def kobert_reference(content):
    switches = {"lower_case": False, "strip_accents": True, "normalize_quotes": True, "split_number_commas": True}
    return sentencepiece_reference.ReferenceTokenizer(content, **switches)


@pytest.fixture
def kobert(released, of_kobert):
    """A folder of KoBERT without tokenizer."""
    return released(len(SentencePieceModel.from_bytes(of_kobert).pieces))


def test_kobert_of_the_hub_has_its_own_ids(kobert, of_kobert, tmp_path):
    (kobert / "spiece.model").write_bytes(of_kobert)
    to_ours(kobert, tmp_path / "alone")  # as nothing but a BERT's config says
    config = {"tokenizer_class": "XLNetTokenizer", "keep_accents": False, "remove_space": True, "sep_token": "[SEP]"}
    (kobert / "tokenizer_config.json").write_text(json.dumps(config))
    to_ours(kobert, tmp_path / "ours")
    assert load_tokenizer(tmp_path / "alone").to_dict() == load_tokenizer(tmp_path / "ours").to_dict()
    tokenizer, reference = load_tokenizer(tmp_path / "ours"), kobert_reference(of_kobert)
    texts = [*TEXTS, "[MASK]은 [SEP] 2010, 각"]
    assert tokenizer.encode_ids(texts).to_list() == [reference.encode_as_huggingface(text) for text in texts]
    ids = [tokenizer.vocabulary.id_of(f"[{name}]") for name in ("UNK", "PAD", "CLS", "SEP", "MASK")]
    assert ids == [0, 1, 2, 3, 4]
    pair = tokenizer.encode("나는", "너는").ids
    assert pair.count(3) == 2 and pair[0] == 2, "its class puts pairs as BERT does, and not as XLNet"


def test_kobert_with_a_vocabulary_beside_its_model_has_the_ids_of_that(kobert, of_kobert, tmp_path):
    """monologg's folders: the pieces come from the model, and their ids from vocab.txt."""
    (kobert / "tokenizer_78b3253a26.model").write_bytes(of_kobert)
    pieces = [piece.text for piece in SentencePieceModel.from_bytes(of_kobert).pieces]
    moved = [*pieces[:5], *pieces[:4:-1]]
    (kobert / "vocab.txt").write_text("".join(f"{piece}\n" for piece in moved), "utf-8")
    of_class = {"tokenizer_class": "KoBertTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_kobert.Ko", None]}}
    for number, config in enumerate([None, of_class]):
        if config is not None:
            (kobert / "tokenizer_config.json").write_text(json.dumps(config))
        to_ours(kobert, tmp_path / f"ours {number}")
        tokenizer, reference = load_tokenizer(tmp_path / f"ours {number}"), kobert_reference(of_kobert)
        expected = [[moved.index(pieces[i]) for i in reference.encode_as_huggingface(text)] for text in TEXTS]
        assert tokenizer.encode_ids(TEXTS).to_list() == expected
    (kobert / "vocab.txt").write_text("".join(f"{piece}\n" for piece in moved[:-1]), "utf-8")
    sentences = to_ours(kobert, tmp_path / "less")
    assert any("is not in the vocabulary that goes with it" in sentence for sentence in sentences)


def write_fine_tuned(transformers, folder, content, class_name):
    """Writes a fine-tuned model of XLM-RoBERTa with random weights, and returns it with its tokenizer."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    sizes |= {"vocab_size": len(fairseq_pieces(content)), "max_position_embeddings": 66, "type_vocab_size": 1}
    theirs = randomized(getattr(transformers, f"XLMRoberta{class_name}")(transformers.XLMRobertaConfig(**sizes)))
    theirs.save_pretrained(folder)
    write_xlm_roberta(folder, content, "model json class")
    return theirs, transformers.AutoTokenizer.from_pretrained(folder)


PAIRS = [("나는 밥을 먹었다.", "영화가 정말로 재미있다"), ("<mask>은 무엇일까?", "ㅋㅋ 그는 서울에서 태어났다.")]


@pytest.mark.slow
def test_answers_are_those_of_transformers(transformers, of_xlm_roberta, tmp_path):
    theirs, tokenizer = write_fine_tuned(transformers, tmp_path / "theirs", of_xlm_roberta, "ForQuestionAnswering")
    to_ours(tmp_path / "theirs", tmp_path / "ours")
    for pair, found in zip(PAIRS, albert_tf.load(tmp_path / "ours").predict(PAIRS), strict=True):
        inputs = tokenizer(*pair, return_tensors="pt", return_offsets_mapping=True)
        offsets = inputs.pop("offset_mapping")[0].numpy()
        place = [number for number, sequence in enumerate(inputs.sequence_ids()) if sequence == 1]
        outputs = theirs.double()(**inputs)
        start, end = (values[0].detach().numpy() for values in (outputs.start_logits, outputs.end_logits))
        _, first, last = max((start[i] + end[j], i, j) for i in place for j in place if j >= i)
        assert found["text"] == pair[1][offsets[first][0] : offsets[last][1]].strip(), found


def test_files_of_tasks_are_encoded_with_two_separators_and_nothing_counts_as_cut(
    xlm_roberta, of_xlm_roberta, tmp_path
):
    write_xlm_roberta(xlm_roberta, of_xlm_roberta, "model")
    to_ours(xlm_roberta, tmp_path / "ours")
    tokenizer = load_tokenizer(tmp_path / "ours")
    first, second = PAIRS[0]
    expected = tokenizer.encode(first, second).ids
    assert expected.count(2) == 3
    texts = encode_and_count_cut(tokenizer, [LabelledText(first, second, None, 1)], len(expected))
    assert texts["input_ids"].tolist() == [expected] and texts["pieces_cut"].tolist() == [0]
    questions = encode_questions([Question("", first, second, ())], tokenizer, len(expected), WindowOptions())
    assert questions["input_ids"].tolist() == [expected]
    position = int(questions["context_positions"][0])
    assert questions["segment_ids"].tolist() == [tokenizer.encode(first, second).segment_ids]
    assert expected[position - 2 : position] == [2, 2]
