"""What tests of several kinds of models that are asked share."""

import pathlib

import pytest

from albert_tf.serving.exporting import export_model

SHIPPED = pathlib.Path(__file__).resolve().parent.parent.parent / "models" / "albert_ko_small"


@pytest.fixture(scope="session")
def exported_shipped(tmp_path_factory) -> pathlib.Path:
    """The folder of a SavedModel of the model that is shipped, which takes ten seconds to trace."""
    folder = tmp_path_factory.mktemp("served") / "albert_ko_small"
    export_model(str(SHIPPED), str(folder))
    return folder
