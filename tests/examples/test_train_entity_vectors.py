"""examples/train_entity_vectors.py: what it learns of made-up triples, and the folder that pre-training reads."""

import pathlib
import runpy

import numpy as np
import pytest

from albert_tf.pretraining_data.entities import read_entity_vectors

EXAMPLE = str(pathlib.Path(__file__).parents[2] / "examples" / "train_entity_vectors.py")
PEOPLE, CITIES, COUNTRIES = 300, 30, 6


@pytest.fixture
def triples():
    """People who live in cities of countries: where somebody lives tells the country, and the country the language."""
    triples = [(f"도시{city}", "나라", f"나라{city % COUNTRIES}") for city in range(CITIES)]
    for person, city in enumerate(np.random.default_rng(0).integers(CITIES, size=PEOPLE)):
        country = city % COUNTRIES
        homes = (("거주지", f"도시{city}"), ("국적", f"나라{country}"), ("언어", f"언어{country}"))
        triples += [(f"사람{person}", relation, tail) for relation, tail in homes]
    return triples


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs the example on triples; returns its functions."""

    def run_example(triples):
        (tmp_path / "triples.tsv").write_text("".join("\t".join(triple) + "\n" for triple in triples))
        given = [tmp_path / "triples.tsv", tmp_path / "vectors", "--entity_size=32"]
        monkeypatch.setattr("sys.argv", [EXAMPLE, *map(str, given)])
        return runpy.run_path(EXAMPLE, run_name="__main__")

    return run_example


def test_triples_that_were_left_out_are_told_from_others(run, triples, tmp_path, capsys):
    left_out = [triple for triple in triples if triple[1] == "언어"][:40]
    run([triple for triple in triples if triple not in left_out])
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert losses[-1] < losses[0] / 10
    assert {path.name for path in (tmp_path / "vectors").iterdir()} == {"entities.txt", "entity_vectors.npy"}
    names, vectors = read_entity_vectors(tmp_path / "vectors", "`entity_vectors`")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    of_name = dict(zip(names, vectors))
    known = [of_name[tail] - of_name[head] for head, relation, tail in triples if relation == "언어"][40:]
    language = np.mean(known, axis=0)
    ranks = []
    for head, _, tail in left_out:
        distances = np.linalg.norm(of_name[head] + language - vectors, axis=1)
        ranks.append((distances < np.linalg.norm(of_name[head] + language - of_name[tail])).sum())
    assert np.mean(ranks) < 1  # by chance it is 170


@pytest.mark.parametrize("line", ["세종\t아들", "세종\t \t문종", "세종\t아들\t문종\t1450"])
def test_line_that_is_no_triple_is_refused(run, triples, tmp_path, line):
    with pytest.raises(SystemExit, match=r"triples.tsv, line 2: write a head, a relation and a tail"):
        run([triples[0], [line]])
    assert not (tmp_path / "vectors").exists()
