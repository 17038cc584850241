"""A format of exports is one class and a line in `FORMATS`."""

import os
import tempfile
import zipfile

import pytest
import tensorflow as tf

import albert_tf
from albert_tf.asking.answers import DEFAULT, rows_of
from albert_tf.asking.backend import Export, Predicted
from albert_tf.asking.cards import check_files
from albert_tf.base.errors import InputError
from albert_tf.serving.exporting import export_model, write_saved_model
from albert_tf.serving.formats import FORMATS, Format, open_export


class Zipped(Format):
    """A SavedModel as one file."""

    name, file, reads_ids = "zipped", "model.zip", False
    needs_tensorflow = True

    def write(self, folder, trained, weight_type):
        with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(os.path.join(folder, self.file), "w") as archive:
            functions = write_saved_model(place, trained, weight_type)
            for parent, _, names in os.walk(place):
                for name in names:
                    path = os.path.join(parent, name)
                    archive.write(path, os.path.relpath(path, place))
        return functions

    def load(self, folder):
        return ZippedBackend(folder, self.read_card(folder), os.path.join(folder, self.file))


class ZippedBackend(Export):
    """Computes what is in the file."""

    def __init__(self, folder, card, path):
        super().__init__(folder, card)
        check_files(card, folder)
        with tempfile.TemporaryDirectory() as place:
            zipfile.ZipFile(path).extractall(place)
            self._loaded = tf.saved_model.load(place)

    def compute(self, signature, inputs):
        found = self._loaded.signatures[signature](**{name: tf.constant(texts) for name, texts in inputs.items()})
        return {name: values.numpy() for name, values in found.items()}

    def predict(self, examples, batch_size):
        rows = rows_of(self.compute(self.answer.signature, {"text": [text for (text,) in examples]}))
        return Predicted(list(map(self.answer.prediction, rows)), 0, (0, [], []))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(FORMATS, Zipped.name, Zipped())


@pytest.mark.slow
def test_it_is_exported_loaded_served_and_shown(
    export_classifier, exported_classifier, run_script, monkeypatch, tmp_path
):
    pytest.importorskip("uvicorn", reason="needs uvicorn and starlette: pip install 'albert_tf[serve]'")
    folder, texts = export_classifier("zipped"), ["좋은 영화", ""]
    assert [path.name for path in folder.glob("1/*.zip")] == ["model.zip"]
    model, expected = albert_tf.load(folder), albert_tf.load(exported_classifier).predict(texts)
    assert model.predict(texts) == expected
    assert open_export(folder).signatures == open_export(exported_classifier).signatures

    served = []
    monkeypatch.setattr("albert_tf.server.server.serve", lambda *given: served.append(given))
    assert run_script("serve", model_dir=folder).code == 0
    [(backend, name, _)] = served
    (row, _) = rows_of(backend.compute(DEFAULT, {"text": texts}))
    assert (name, row["label"]) == ("films", expected[0]["label"])

    result = run_script("export_model.py", model_dir=tmp_path / "none", output_dir=tmp_path / "out", format="zipped")
    assert "no checkpoint" in result.errors  # and not that there is no such format
    with pytest.raises(InputError, match="can't store `weights=int8`; use float32, or `format=litert`, which can"):
        export_model(tmp_path, tmp_path / "out", "int8", "zipped")
    pytest.importorskip("gradio", reason="needs gradio: pip install 'albert_tf[playground]'")
    from albert_tf.cli.playground import build_page

    assert build_page(model, "").fn(texts[0])[1] == expected[0]
