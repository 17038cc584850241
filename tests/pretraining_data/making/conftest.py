"""create_pretraining_data.py on a small corpus."""

import json

import pytest


@pytest.fixture
def workspace(tmp_path, tiny_tokenizer, write_corpus, random_documents):
    """A folder with corpus.txt and vocab/vocab.txt."""
    tiny_tokenizer.save(tmp_path / "vocab")
    write_corpus(tmp_path / "corpus.txt", random_documents(40))
    return tmp_path


@pytest.fixture
def create(run_script, workspace):
    """Runs the script on the workspace's corpus, into the folder data; flags may be replaced or added."""

    def run(**flag_values):
        defaults = {
            "input_file": workspace / "corpus.txt",
            "vocab_file": workspace / "vocab" / "vocab.txt",
            "output_file": workspace / "data" / "train.tfrecord",
            "max_seq_length": 32,
            "held_out_fraction": 0.3,
        }
        return run_script("create_pretraining_data.py", **(defaults | flag_values))

    return run


@pytest.fixture
def refuses(contents_of, create, workspace):
    """Checks that the script ends in one sentence that says `message`, and that no file is touched."""

    def check(message, **flag_values):
        before = contents_of(workspace)
        result = create(**flag_values)
        assert result.code != 0
        assert result.errors.startswith("error: ")
        assert result.errors.count("\n") == 1 and result.errors.endswith("\n")
        assert message in result.errors
        assert contents_of(workspace) == before

    return check


@pytest.fixture
def read_manifest(workspace):
    """Reads the manifest that the script wrote."""
    return lambda: json.loads((workspace / "data" / "manifest.json").read_text(encoding="utf-8"))
