"""create_pretraining_data.py --entity_file: what it makes, and what it is refused with."""

import pytest

from albert_tf.pretraining_data.making.shard_writer import ShardWriter


@pytest.fixture
def workspace(workspace):
    """A folder with corpus.txt, vocab/vocab.txt and names.txt."""
    (workspace / "names.txt").write_text("가나\n뷁\n다\tLC\n", encoding="utf-8")
    return workspace


@pytest.mark.slow
def test_names_are_counted_and_written_down(create, read_manifest, workspace):
    result = create(entity_file=workspace / "names.txt")
    assert result.code == 0, result.errors
    assert f"2 names of {workspace}/names.txt; left out: 1 has a word that the vocabulary can't spell" in result.output
    options, splits = read_manifest()["options"], read_manifest()["splits"]
    assert options["num_names"] == 2 and len(options["names_sha256"]) == 64
    assert f"train: {splits['train']['mentions']:,} mentions of entities" in result.output


@pytest.mark.slow
def test_build_is_resumed_with_the_same_names_alone(create, workspace, monkeypatch, contents_of):
    assert create(entity_file=workspace / "names.txt").code == 0
    expected = contents_of(workspace / "data")
    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            create(entity_file=workspace / "names.txt", overwrite=True)
    (workspace / "others.txt").write_text("가나\n", encoding="utf-8")
    result = create(entity_file=workspace / "others.txt", overwrite=True, resume=True)
    assert "holds an unfinished build with another names_sha256" in result.errors
    assert create(entity_file=workspace / "names.txt", overwrite=True, resume=True).code == 0
    assert contents_of(workspace / "data") == expected


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"entity_file": "names.txt", "do_whole_word_mask": False}, "leave --do_whole_word_mask=false out"),
        (
            {"entity_file": "names.txt", "objective": "causal"},
            "pieces of --sentence_pair=document_blocks are not masked",
        ),
        ({"entity_file": "nowhere.txt"}, "nowhere.txt"),
        ({"entity_file": "empty.txt"}, "empty.txt contains no names"),
    ],
)
def test_what_can_not_be_is_refused(refuses, workspace, flags, message):
    (workspace / "empty.txt").write_text("\n", encoding="utf-8")
    flags = {name: workspace / value if str(value).endswith(".txt") else value for name, value in flags.items()}
    refuses(message, **flags)
