"""What the notebooks share: installing, devices, one's own files, tables, what is shown meanwhile.

Until `install` is done it needs nothing but IPython.
"""

import contextlib
import html
import importlib.metadata
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import time

from IPython.display import HTML, Image, display

_NEEDED = ("tensorflow", "tensorflow_text", "tokenizers", "kiwipiepy", "matplotlib", "sklearn")
# Versions that go together on a TPU: docs/tpu.md, "Install".
_FOR_TPU = (
    ["tensorflow-tpu==2.20.0", "libtpu==0.0.14", "jax==0.6.2", "jaxlib==0.6.2", "absl-py>=2.1", "numpy>=1.26,<3"],
    ["--no-deps", "tensorflow-text==2.20.1"],
    ["tokenizers>=0.20,<0.24", "kiwipiepy>=0.24,<0.25", "matplotlib>=3.8", "scikit-learn>=1.5"],
)


def is_test():
    """Returns whether continuous integration runs the notebook: at reduced size, and without installing anything."""
    return bool(os.environ.get("ALBERT_TF_NOTEBOOK_TEST"))


def install():
    """Installs what is missing, for the device that is there, and imports TensorFlow without its messages."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None and not is_test()]
    has_tpu = any(map(os.path.exists, ("/dev/accel0", "/dev/vfio/0")))
    if missing:
        print(f"installing, a few minutes: {', '.join(missing)} missing", flush=True)
        tensorflow = ""
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            tensorflow = importlib.metadata.version("tensorflow")
        for arguments in pip_arguments(has_tpu, os.path.exists("/dev/nvidia0"), tensorflow):
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", *arguments], check=True)
        importlib.invalidate_caches()
    print("installed" if missing else "nothing to install")
    if has_tpu and importlib.util.find_spec("libtpu"):
        os.environ.setdefault("PJRT_DEVICE", "TPU")
        os.environ.setdefault("NEXT_PLUGGABLE_DEVICE_USE_C_API", "true")
        library = importlib.import_module("libtpu").get_library_path()
        os.environ.setdefault("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library)
    if "COLAB_RELEASE_TAG" in os.environ and shutil.which("apt-get"):  # without it plots have no Hangul
        subprocess.run(["apt-get", "install", "-y", "-qq", "fonts-nanum"], capture_output=True, check=False)

    from albert_tf.base.startup import import_tensorflow, use_onednn

    use_onednn()
    import_tensorflow()
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    importlib.import_module("absl.logging").set_verbosity("error")


def pip_arguments(has_tpu, has_gpu, tensorflow):
    """Returns what `pip install` is called with, one call after the other; `tensorflow` is the version there, or ""."""
    if has_tpu:
        return _FOR_TPU
    series = ".".join(tensorflow.split(".")[:2])
    if series in ("2.19", "2.20", "2.21"):  # made for the drivers that are there
        return [[".[notebooks]", f"tensorflow=={tensorflow}", f"tensorflow-text=={series}.*"]]
    return [[".[notebooks]", *["tensorflow[and-cuda]>=2.19,<2.22"] * has_gpu]]


def find_strategy():
    """Returns the strategy of this machine's TPU, or else of its GPUs, or else of its CPU; says which, and why."""
    from albert_tf.base.errors import InputError
    from albert_tf.training.devices import describe_device, has_tpu, make_strategy, unused_device_warnings

    strategy = None
    if has_tpu():
        try:
            strategy = make_strategy(use_tpu=True, tpu_timeout=120.0)
        except InputError as error:
            print(f"there is a TPU, but it can't be used: {error}")
    if strategy is None:
        strategy = make_strategy()
        for line in unused_device_warnings(strategy):
            if "TPU" not in line:
                print(line)
    print(describe_device(strategy))
    return strategy


def find_data(data, sample, folder="uploads"):
    """Returns the path of the data: `sample`, files that are uploaded to Colab into `folder`, or what `data` names."""
    if data == "samples":
        return sample
    is_drive = data.startswith("/content/drive")
    assert importlib.util.find_spec("google.colab") or data != "upload", "uploads are Colab's; name a folder in DATA"
    if data == "upload":
        uploaded = importlib.import_module("google.colab.files").upload()
        assert uploaded, "no file was chosen; run the cell again"
        os.makedirs(folder, exist_ok=True)
        for name, content in uploaded.items():
            with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
                file.write(content)
        return folder
    if is_drive and not os.path.isdir("/content/drive/MyDrive"):
        importlib.import_module("google.colab.drive").mount("/content/drive")
    assert os.path.exists(data), f'DATA="{data}": there is no such file or folder'
    return data


def table(columns, rows):
    """Returns rows of cells as a table; texts are shown as they are, and what is HTML as such."""
    head = "".join(f"<th style='text-align:left'>{html.escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return HTML(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _cell(value):
    is_number = str(value).translate(str.maketrans("", "", " %+-.,:")).isdigit()
    page = value.data if isinstance(value, HTML) else html.escape(str(value))
    return f"<td style='text-align:{'right' if is_number else 'left'};white-space:pre-wrap'>{page}</td>"


def marked(parts):
    """Returns a text with coloured parts, each a text, its colour ("" for none) and a note behind it ("" for none)."""
    page = ""
    for text, color, note in parts:
        text, note = html.escape(text), f" <small><b>{html.escape(note)}</b></small>" * bool(note)
        style = f"background:{color};border-radius:3px;padding:1px 3px;margin:0 1px"
        page += f"<span style='{style}'>{text}{note}</span>" if color else text
    return HTML(f"<span style='line-height:1.9'>{page}</span>")


def pieces(text, offsets):
    """Returns a text with its pieces in two colours by turns."""
    parts, end = [], 0
    for number, (begin, stop) in enumerate((begin, stop) for begin, stop in offsets if begin < stop):
        parts += [(text[end:begin], "", ""), (text[begin:stop], ("#cfe8ff", "#ffe3b8")[number % 2], "")]
        end = stop
    return marked([*parts, (text[end:], "", "")])


def with_progress(title, values, share_done):
    """Yields values, and shows how far they are, which `share_done` tells."""
    handle, shown_at = display(HTML(title), display_id=True), time.monotonic()
    for value in values:
        if time.monotonic() - shown_at > 0.5:
            handle.update(HTML(f"<progress value='{share_done():.3f}'></progress> {title} {share_done():.0%}"))
            shown_at = time.monotonic()
        yield value
    handle.update(HTML(f"<progress value='1'></progress> {title} 100%"))


class TrainingWatch:
    """Plots what a run measures while it trains, as `on_metrics` of `TrainingRun`; a plot for each name in `panels`."""

    def __init__(self, output_dir, num_train_steps, panels=("loss",), title="training"):
        self._output_dir, self._num_train_steps, self._panels, self._title = output_dir, num_train_steps, panels, title
        self._handle, self._plotted_at = display(self._plot(), display_id=True), time.monotonic()

    def __call__(self, step, split, values):
        if step == self._num_train_steps or time.monotonic() - self._plotted_at > 2:
            self._handle.update(self._plot())
            self._plotted_at = time.monotonic()

    def _plot(self):
        from matplotlib.figure import Figure

        from albert_tf.training.progress import read_metrics

        rows = read_metrics(str(self._output_dir))
        step = max((row["step"] for row in rows), default=0)
        figure = Figure(figsize=(4.2 * len(self._panels), 3.1), layout="constrained")
        figure.suptitle(f"{self._title}: step {step:,} of {self._num_train_steps:,}", fontsize="medium")
        for axes, name in zip(figure.subplots(1, len(self._panels), squeeze=False)[0], self._panels):
            for split, style in (("train", "-"), ("held_out", "o--")):
                points = sorted((row["step"], row[name]) for row in rows if row["split"] == split and name in row)
                if points:
                    axes.plot(*zip(*points), style, label=split.replace("_", "-"), markersize=4)
            axes.set(title=name.replace("_", " "), xlabel="step", xlim=(0, 1.03 * self._num_train_steps))
            axes.grid(alpha=0.3)
            if axes.has_data():
                axes.legend(fontsize="small")
        return Image(png_of(figure))


def read_attention(model, text, max_pieces):
    """Returns what a pre-trained model looks at when it reads a text, of which so many pieces are read at most.

    Returns:
        The S pieces that it reads, special tokens among them; and how much each, a row, looks at each other one,
        float32 [layers, heads, S, S].
    """
    import numpy as np
    import tensorflow as tf

    from albert_tf.serving.signature_base import TextInputs

    batch, _ = TextInputs(model.tokenizer, max_pieces).encode_masked(tf.constant([text]))
    # The model itself is asked, and not its encoder: some change what the encoder reads.
    found = model.model(batch, output_attentions=True)["attentions"]
    pieces = [model.tokenizer.vocabulary.pieces[each] for each in batch["input_ids"][0]]
    return pieces, np.stack([layer[0].numpy() for layer in found])


def png_of(figure, dpi=80):
    """Returns a matplotlib figure as a PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi)
    return file.getvalue()


class Clock:
    """Says how long each part of a notebook takes: `with clock("vocabulary"): ...`, and in the end `clock.table()`."""

    def __init__(self):
        self._seconds = {}

    @contextlib.contextmanager
    def __call__(self, part):
        """Measures what is done inside of it."""
        started_at = time.monotonic()
        yield
        self._seconds[part] = time.monotonic() - started_at

    def table(self):
        """Returns the times of all parts, and their sum."""
        times = {**self._seconds, "total": sum(self._seconds.values())}
        return table(("", "time"), [(part, f"{round(seconds):,} s") for part, seconds in times.items()])
