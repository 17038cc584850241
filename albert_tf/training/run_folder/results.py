"""Which files results go to: those of the run's own data, or others beside them for other data."""

import os
import re

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, write_json
from albert_tf.base.settings import check_types

DATA_FILE = "data_of_results.json"


def claim_results(output_dir: str, data: dict[str, dict[str, str]]) -> None:
    """Records what data the files of results are of, but for those of which that is known already."""
    known = _known_data(output_dir)
    if data.keys() - known.keys():
        write_json(os.path.join(output_dir, DATA_FILE), {**data, **known})


def check_results_data(output_dir: str, file_name: str, data: dict[str, str]) -> None:
    """Checks that data are those that a run is measured with while it trains."""
    known = _known_data(output_dir).get(file_name)
    if known and known["sha256"] != data["sha256"]:
        raise InputError(
            f"`output_dir={output_dir}` holds a run that is evaluated on {_describe(known)} while it trains, "
            f"but now on {_describe(data)}; name the former again, or evaluate the latter without `do_train`"
        )


def read_results(path: str) -> dict[str, float | None]:
    """Returns the measures of eval_results.json by name."""
    values = read_json(path, "the results")
    return check_types(values, dict.fromkeys(values, float | None), path)


def results_path(
    output_dir: str, file_name: str, data: dict[str, str] | None, beside: str | None = None
) -> tuple[str, bool]:
    """Returns the path of the file for results, and whether it is the one for the run's own data, as for no data.

    Unknown data become its own where no such file is there yet. `beside` is the main file that this one adds to.
    """
    path = os.path.join(output_dir, file_name)
    if data is None:
        return path, True
    beside = beside or file_name
    known = _known_data(output_dir).get(beside)
    if known["sha256"] == data["sha256"] if known else not tf.io.gfile.exists(os.path.join(output_dir, beside)):
        return path, True
    stem, extension = os.path.splitext(path)
    name = re.sub(r"[^\w-]+", "_", os.path.splitext(data["name"])[0])
    return f"{stem}-{name}-{data['sha256'][:8]}{extension}", False


def _known_data(output_dir):
    path = os.path.join(output_dir, DATA_FILE)
    if not tf.io.gfile.exists(path):
        return {}
    known = read_json(path, "the data of the results")
    for name, data in known.items():
        check_types(data, {"name": str, "sha256": str}, f'{path}, "{name}"', ("name", "sha256"))
    return known


def _describe(data):
    return f"{data['name']} with SHA-256 {data['sha256'][:8]}"
