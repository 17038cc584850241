"""create_pretraining_data.py turns a corpus into shards that can be found again; a mistake costs one sentence."""

import pathlib
import unicodedata

import pytest

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.runs.settings.data import DataSettings
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary


@pytest.mark.slow
def test_shards_can_be_found_and_the_summary_is_true(contents_of, create, read_manifest, workspace, config):
    result = create(num_shards=2)
    assert (result.code, result.errors) == (0, "")
    data = workspace / "data"
    manifest = read_manifest()
    assert "40 documents" in result.output
    for name, split in manifest["splits"].items():
        assert f"{name}: {split['examples']} examples" in result.output
    shards = [f"train-0000{number}-of-00002.tfrecord" for number in range(2)]
    assert sorted(contents_of(data)) == ["held_out.tfrecord", "manifest.json", "tokenizer.json", *shards, "vocab.txt"]
    found = find_shards([str(data / "*.tfrecord")], config)
    assert len(found.train_paths) == 2
    # Masking is dynamic unless asked otherwise, and masks 15% of the longest sequence.
    assert (found.train_options.is_static, found.train_options.max_predictions_per_seq) == (False, 5)


@pytest.mark.slow
def test_flags_reach_the_builder(create, read_manifest):
    flag_values = {
        "masking": "static",
        "do_whole_word_mask": False,
        "ngram": 2,
        "favor_shorter_ngram": False,
        "max_predictions_per_seq": 4,
        "masked_lm_prob": 0.2,
        "short_seq_prob": 0.3,
        "dupe_factor": 3,
        "random_seed": 7,
        "sentence_pair": "document_sentences",
        "sentence_splitter": "rule",
        "deduplicate": True,
        "do_permutation": True,
    }
    assert create(**flag_values).code == 0
    options = read_manifest()["options"]
    masking_options = options.pop("masking_options")
    packed = {"packing": "document_sentences", "objective": "roberta"}
    del flag_values["sentence_pair"]
    assert masking_options.pop("replacement_unit") == "piece"
    assert options | masking_options == flag_values | packed | {"max_seq_length": 32, "held_out_fraction": 0.3}


def test_documents_are_repeated_only_where_masks_stay():
    assert DataSettings(masking="dynamic").builder_options().dupe_factor == 1
    assert DataSettings(masking="static").builder_options().dupe_factor == 40


def test_output_files_may_be_listed_and_inputs_be_globs(
    create, read_manifest, workspace, write_corpus, random_documents
):
    write_corpus(workspace / "corpus2.txt", random_documents(10, seed=8))
    outputs = [workspace / "data" / name for name in ("a.tfrecord", "b.tfrecord")]
    assert create(input_file=workspace / "corpus*.txt", output_file=outputs).code == 0
    manifest = read_manifest()
    assert manifest["documents"] == 50
    assert manifest["input_files"] == ["corpus.txt", "corpus2.txt"]
    assert manifest["splits"]["train"]["files"] == ["a.tfrecord", "b.tfrecord"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"input_file": ""}, "--input_file is missing"),
        ({"vocab_file": "gone.txt"}, "can't read the vocabulary gone.txt: no such file"),
        ({"input_file": "{0}/corpus.txt,{0}/*.gz"}, "--input_file: no file matches {0}/*.gz"),
        ({"output_file": "{0}/data/"}, "--output_file={0}/data/ is a folder"),
        ({"held_out_file": "{0}/vocab", "overwrite": True}, "--held_out_file={0}/vocab is a folder"),
        ({"output_file": "{0}/data/a", "held_out_file": "{0}/data/a"}, "{0}/data/a is named twice"),
        ({"held_out_file": "other/b"}, "other/b is not in the folder of"),
        ({"max_predictions_per_seq": 32}, "--max_predictions_per_seq=32 must be less than --max_seq_length=32"),
        ({"do_lower_case": False}, "--do_lower_case=False contradicts"),
        (
            {"objective": "bert", "sentence_pair": "halves"},
            "--objective=bert needs examples packed as next, but these are packed as halves, for halves and distil",
        ),
        (
            {"sentence_pair": "document_blocks", "masking": "static"},
            "--masking=static: pieces of --sentence_pair=document_blocks are not masked; leave it out",
        ),
        ({"entity_file": "{0}/corpus.txt", "do_whole_word_mask": False}, "leave --do_whole_word_mask=false out"),
        ({"entity_file": "{0}/corpus.txt", "objective": "causal"}, "--sentence_pair=document_blocks are not masked"),
        ({"entity_file": "nowhere.txt"}, "nowhere.txt"),
        (
            {"runner": "FnApiRunner", "pipeline_arguments": "--a='b"},
            "can't be split into arguments (No closing quotation)",
        ),
    ],
)
def test_wrong_flags_are_named_before_any_work(refuses, workspace, flags, message):
    flags = {name: value.format(workspace) if isinstance(value, str) else value for name, value in flags.items()}
    refuses(message.format(workspace), **flags)


@pytest.mark.parametrize("token", ["[PAD]", "[MASK]"])
def test_vocabulary_without_a_special_token_is_refused(refuses, workspace, tiny_tokenizer, token):
    path = workspace / "incomplete.txt"
    path.write_text("\n".join(piece for piece in tiny_tokenizer.vocabulary.pieces if piece != token), encoding="utf-8")
    refuses(f"{path} has no {token}", vocab_file=path)


@pytest.mark.slow
def test_outputs_are_replaced_only_with_overwrite(contents_of, refuses, create, workspace):
    assert create(random_seed=1).code == 0
    before = contents_of(workspace / "data")
    refuses(f"{workspace}/data/train.tfrecord is there already", random_seed=2)
    for name in ("train.tfrecord", "held_out.tfrecord"):
        (workspace / "data" / name).unlink()
    refuses(f"{workspace}/data/manifest.json is there already", random_seed=2)
    assert create(random_seed=2, overwrite=True).code == 0
    after = contents_of(workspace / "data")
    assert after.keys() == before.keys()
    assert after["train.tfrecord"] != before["train.tfrecord"]


def test_another_vocabulary_in_the_output_folder_is_not_replaced(refuses, create, workspace):
    other = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "가"]))
    other.save(workspace / "data")
    refuses(f"{workspace}/data/vocab.txt is there already")
    assert create(overwrite=True).code == 0
    assert KoreanWordPieceTokenizer.load(workspace / "data").identity != other.identity


def test_vocabulary_may_lie_in_the_output_folder(contents_of, create, workspace):
    folder = workspace / "vocab"
    before = contents_of(folder)
    assert create(output_file=folder / "train.tfrecord").code == 0
    assert before.items() <= contents_of(folder).items()


def test_resume_of_a_finished_build_changes_nothing(contents_of, create, refuses, read_manifest, workspace):
    assert create(resume=True).code == 0
    before = contents_of(workspace)
    result = create(resume=True)
    assert (result.code, contents_of(workspace)) == (0, before)
    assert "nothing to resume" in result.output
    refuses(f"{workspace}/data/train.tfrecord is there already", resume=True, random_seed=2)
    refuses(f"{workspace}/data/held_out.tfrecord is there already", resume=True, num_shards=2)
    content = (workspace / "corpus.txt").read_bytes()
    (workspace / "corpus.txt").write_bytes(content[: len(content) // 3].rpartition(b"\n\n")[0])
    refuses(f"{workspace}/corpus.txt is not the text that {workspace}/data/manifest.json was made from", resume=True)
    assert create(resume=True, overwrite=True).code == 0
    assert read_manifest()["documents"] < 20


@pytest.mark.parametrize(
    ("given", "packing", "objective"),
    [
        ({}, "order", "albert"),
        ({"objective": "bert"}, "next", "bert"),
        ({"objective": "roberta"}, "full_sentences", "roberta"),
        ({"sentence_pair": "halves"}, "halves", "halves"),
        ({"objective": "causal"}, "document_blocks", "causal"),
        ({"sentence_pair": "document_sentences"}, "document_sentences", "roberta"),
        ({"random_next_sentence": True}, "next", "bert"),
    ],
)
def test_objective_chooses_the_packing_and_the_packing_the_objective(given, packing, objective):
    assert DataSettings(**given).packing_and_objective() == (packing, objective)
    with pytest.raises(InputError, match="`random_next_sentence` contradicts `sentence_pair=order`"):
        DataSettings(random_next_sentence=True, sentence_pair="order").packing_and_objective()


@pytest.mark.slow
def test_names_are_counted_and_written_down(create, read_manifest, workspace):
    (workspace / "names.txt").write_text("가나\n뷁\n다\tLC\n", encoding="utf-8")
    result = create(entity_file=workspace / "names.txt")
    assert result.code == 0, result.errors
    assert f"2 names of {workspace}/names.txt; left out: 1 has a word that the vocabulary can't spell" in result.output
    options, splits = read_manifest()["options"], read_manifest()["splits"]
    assert options["num_names"] == 2 and len(options["names_sha256"]) == 64
    assert f"train: {splits['train']['mentions']:,} mentions of entities" in result.output


@pytest.mark.slow
def test_repeated_documents_are_left_out_on_request(create, read_manifest, workspace, write_corpus, random_documents):
    documents = random_documents(40)
    write_corpus(workspace / "again.txt", [*documents[5:15], ["새 글", "다른 글"]])
    inputs = [workspace / "corpus.txt", workspace / "again.txt"]
    assert create(input_file=inputs, deduplicate=True).code == 0
    manifest = read_manifest()
    assert (manifest["documents"], manifest["duplicate_documents"]) == (41, 10)


@pytest.mark.slow
def test_long_document_is_one_document_and_its_parts_stay_together(create, read_manifest, workspace, monkeypatch):
    monkeypatch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", 200)
    syllables = "가나다라마바사아자차카타파하"
    long = "가 나 다\n라 마\n" * 200  # whose parts are alike
    short = "\n\n".join(f"{syllable} 나\n다 {syllable}" for syllable in syllables)
    (workspace / "corpus.txt").write_text(f"{short}\n\n{long}\n{long}", encoding="utf-8")
    for deduplicate in (False, True):
        options = {"sentence_pair": "document_sentences", "deduplicate": deduplicate, "held_out_fraction": 0.5}
        assert create(overwrite=deduplicate, **options).code == 0
        manifest = read_manifest()
        assert manifest["documents"] == len(syllables) + (1 if deduplicate else 2)
        assert manifest["long_documents"] == 2
        splits = manifest["splits"].values()
        assert sum(split["documents"] for split in splits) == manifest["documents"]
        # Both copies are on one side, each with all its pieces.
        [tokens] = [split["tokens"] for split in splits if split["tokens"] > 200]
        assert 1000 * (1 if deduplicate else 2) <= tokens <= 1000 * (1 if deduplicate else 2) + 4 * len(syllables)


def test_examples_of_one_segment_need_only_one_sentence(create, read_manifest, workspace):
    (workspace / "corpus.txt").write_text("가 나 다\n\n라 마\n\n" * 30, encoding="utf-8")
    assert create(sentence_pair="document_sentences", held_out_fraction=0).code == 0
    manifest = read_manifest()
    assert manifest["splits"]["train"]["examples"] == 60
    assert manifest["splits"].keys() == {"train"} and not (workspace / "data" / "held_out.tfrecord").exists()
    assert not {"share_swapped", "share_random_next"} & manifest["splits"]["train"].keys()


@pytest.mark.slow
def test_shard_can_be_inspected_and_plotted(static_shards, run_script, tmp_path):
    plot = tmp_path / "plots" / "shard.png"
    result = run_script("create_pretraining_data.py", inspect=static_shards.train_paths[0], plot=plot, num_inspected=2)
    assert (result.code, result.errors) == (0, "")
    assert "[CLS]" in result.output and f"wrote {plot}" in result.output
    assert plot.read_bytes().startswith(b"\x89PNG")
    result = run_script("create_pretraining_data.py", plot=plot)
    assert result.code == 1 and "--plot needs --inspect" in result.errors


@pytest.mark.slow
def test_korean_text_survives(create, workspace, sample_corpus, sample_tokenizer, sample_tokenizer_dir, read_records):
    paths = sample_corpus[:3]
    assert create(input_file=paths, vocab_file=f"{sample_tokenizer_dir}/vocab.txt", held_out_fraction=0).code == 0
    text = "".join(pathlib.Path(path).read_text(encoding="utf-8") for path in paths)
    text = "".join(unicodedata.normalize("NFC", text).lower().split())
    unknown_id = sample_tokenizer.vocabulary.id_of("[UNK]")
    segments = [
        segment
        for record in read_records([str(workspace / "data" / "train.tfrecord")])
        for segment in (record.earlier, record.later)
        if unknown_id not in segment
    ]
    assert len(segments) > 30
    for segment in segments:
        assert sample_tokenizer.decode(segment).removeprefix("##").replace(" ", "") in text
