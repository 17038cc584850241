# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 어느 모델에 어느 TPU · Which TPU for which model
#
# TPU를 빌리기 전에, TPU의 컴파일러에게 물어봅니다: 이 모델의 한 단계는 메모리를 얼마나 쓰고, 배치는 얼마까지
# 들어가고, 며칠이 걸리는가. **TPU는 필요 없습니다.** 여기 있는 수는 모두 `plan_tpu.py`가 컴파일러(libtpu)에서 얻은
# 것이고, 실제 TPU에서 잰 것은 하나도 없습니다(`docs/tpu.md`).
#
# Before a TPU is rented, its compiler is asked: how much memory does a step of this model take, how large may a batch
# be, how many days would it be? No TPU is needed. All figures here are the compiler's (libtpu), by `plan_tpu.py`;
# none was measured on a TPU (`docs/tpu.md`).

# %%
# 준비: 이 칸을 먼저 실행하세요. Set-up: run this cell first.
REPOSITORY = ""  # @param {type:"string"}
# ↑ albert_tf를 받아 올 git 주소 (Colab에서만). Where to clone albert_tf from; only Colab needs it.

import os
import pathlib
import subprocess
import sys

folders = [pathlib.Path.cwd(), *pathlib.Path.cwd().parents, pathlib.Path("albert_tf")]
root = next((folder for folder in folders if (folder / "albert_tf" / "notebook").is_dir()), None)
if root is None:
    assert REPOSITORY, "REPOSITORY에 git 주소를 적어 주세요. Write the address of the git repository into REPOSITORY."
    subprocess.run(["git", "clone", "-q", "--depth=1", REPOSITORY, "albert_tf"], check=True)
    root = pathlib.Path("albert_tf")
os.chdir(root)
sys.path.insert(0, os.getcwd())

from albert_tf.notebook.installing import install, is_test

install()

# %%
import functools
import importlib.util
import json

import numpy as np
from IPython.display import Image, display
from matplotlib.figure import Figure

from albert_tf.config import AlbertConfig
from albert_tf.notebook.tables import Table
from albert_tf.notebook.watching import Bar, Clock, png_of, without_messages_of_processes
from albert_tf.tpu.chips import TPUS, find_tpu
from albert_tf.training.devices.description import has_tpu

SIZES = {"live_layers": None}  # None: 설정 그대로 · as the config says
if is_test():  # 검사용으로 작게 · small, for continuous integration
    SIZES = {"live_layers": 1}

clock = Clock()

# %% [markdown]
# ## 1. 빌릴 수 있는 것 · What can be rented
#
# 복제본(replica)마다의 메모리, 최고 속도(bfloat16), 메모리 속도입니다(Google이 공개한 값).
#
# Of each replica: memory, peak in bfloat16, and the speed of its memory, as Google publishes them.

# %%
rows = [
    (
        tpu.name,
        tpu.num_replicas,
        f"{tpu.memory_bytes / 2**30:.0f} GiB",
        f"{tpu.peak_flops / 1e12:.1f}",
        f"{tpu.bandwidth / 1e9:,.0f} GB/s",
        f"{tpu.peak_flops / tpu.bandwidth:,.0f}",
    )
    for tpu in TPUS.values()
]
titles = ("TPU", "복제본 replicas", "메모리 memory", "TFLOPS", "메모리 속도 bandwidth", "연산/바이트 operations a byte")
display(Table(titles, rows))

# %% [markdown]
# ## 2. 배치는 얼마까지 · The largest batch
#
# v5e 한 개(16 GB)에 들어가는 가장 큰 배치입니다. LAMB, bfloat16, 조각의 15%를 가림. `python -m
# benchmarks.largest_batches`가 찾은 `docs/tpu.md`의 표를 그대로 읽습니다.
#
# The largest batch on one v5e chip (16 GB), for pre-training with LAMB in bfloat16: the table of `docs/tpu.md`, which
# `python -m benchmarks.largest_batches` found, is read from there.


# %%
def table_of(path, head):
    """Returns the rows of the first Markdown table that begins with these words, each a list of cells."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(head))
    rows = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


head, *batches = table_of("docs/tpu.md", "| length |")
display(Table([cell.replace("`", "") for cell in head], batches))

# %%
figure = Figure(figsize=(9, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
lengths = [int(cell) for cell in head[1:-1]]
for name, *cells in batches:
    sizes = np.array([int(cell.replace(",", "")) for cell in cells])
    (line,) = left.plot(lengths, sizes[:-1], "o-", label=name, markersize=4)
    left.plot(lengths[-1:], sizes[-1:], "^", color=line.get_color())
    right.plot(lengths, sizes[:-1] * lengths, "o-", label=name, markersize=4)
    right.plot(lengths[-1:], sizes[-1:] * lengths[-1], "^", color=line.get_color())
left.set(title="examples in a batch", ylabel="examples")
right.set(title="pieces in a batch", ylabel="pieces")
for axes in (left, right):
    axes.set(xscale="log", yscale="log", xlabel="pieces of an example (triangle: --remat=block)")
    axes.set_xticks(lengths, lengths, minor=False)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
right.set(ylim=(8e3, 9e5))
left.legend(fontsize="small")
display(Image(png_of(figure)))

# %% [markdown]
# 오른쪽이 거의 평평합니다: **메모리를 정하는 것은 조각의 수**이고, 예의 길이가 아닙니다. 파라미터를 나눠 써도
# 메모리는 적어지지 않습니다. 역전파를 위해 층마다의 결과를 간직하기 때문입니다. `--remat=block`은 그것을 다시
# 계산합니다.
#
# Right, lines are nearly flat: what counts is the number of pieces, not their length. Sharing weights saves next to
# no memory here, for a step keeps what every layer computed; `--remat=block` computes that again.
#
# ## 3. 한 단계의 값 · What a step costs
#
# ALBERT-base, 길이 512인 예 32개, v5e 한 개. `python -m benchmarks.tpu_step`이 컴파일러에게서 얻은
# `docs/performance.md`의 표에 **한계(roofline)** 를 더합니다: 그 단계의 연산과 메모리 왕복 가운데 더 오래 걸리는 쪽을
# 공개된 최고 속도로 나눈 것이라, 실제로는 이보다 느립니다.
#
# ALBERT-base, 32 examples of 512 pieces, on one v5e chip: the table of `docs/performance.md`, which `python -m
# benchmarks.tpu_step` asked of the compiler, and with it the roofline: the time that the operations or the memory
# traffic would take at the published limits, whichever is longer. No real run is so fast.


# %%
def number(cell):
    """Returns the first number of a cell of the documents' tables."""
    return float(cell.split(" ")[0].replace(",", ""))


v5e = find_tpu("v5e-1")
head, *steps = table_of("docs/performance.md", "| | operations |")
rows, costs = [], {}
for name, operations, traffic, memory, _ in steps:
    by_operations, by_traffic = number(operations) * 1e9 / v5e.peak_flops, number(traffic) * 1e9 / v5e.bandwidth
    costs[name.replace("`", "")] = by_operations, by_traffic
    slower = max(by_operations, by_traffic)
    rows.append((name.replace("`", ""), operations, traffic, memory, f"{slower * 1e3:.0f} ms", f"{32 / slower:,.0f}"))
titles = ("", "연산 operations", "메모리 왕복 bytes accessed", "메모리 memory", "한계 roofline", "예/초 examples/s")
display(Table(titles, rows))

# %%
figure = Figure(figsize=(7.5, 2.6), layout="constrained")
axes = figure.subplots()
places = np.arange(len(costs))
for shift, column, label in ((-0.2, 0, "operations"), (0.2, 1, "memory traffic")):
    axes.barh(places + shift, [1e3 * each[column] for each in costs.values()], 0.38, label=label)
axes.set_yticks(places, list(costs))
axes.invert_yaxis()
axes.set(xlabel="ms at the limits of a v5e chip", title="a step of base, 32 x 512")
axes.legend(fontsize="small")
display(Image(png_of(figure)))

# %% [markdown]
# 두 막대 가운데 긴 쪽이 한계입니다. 어텐션 커널이 없으면(`plain`) 메모리 왕복이, 있으면 연산이 한계가 됩니다.
#
# The longer of two bars is the limit: memory traffic without the attention kernels (`plain`), operations with them.
#
# ## 4. 함께 든 모델을 여러 TPU에서 · The shipped model on several TPUs
#
# 복제본마다 길이 128인 예를 128개씩. `notebooks/plans.json`에 있고, 만든 명령도 거기 적혀 있습니다. 명령의 `--tpu`에
# 다른 TPU를, 다른 모델의 설정을 적어 그 파일에 더하면 여기에 함께 나옵니다.
#
# 128 examples of 128 pieces on each replica, from `notebooks/plans.json`, which also has the command that made it.
# What is added to that file, other TPUs or the configurations of other models, is shown here too.

# %%
plans = json.loads(pathlib.Path("notebooks/plans.json").read_text(encoding="utf-8"))
for model in plans.values():
    print(model["command"])


def describe(plan):
    """Returns what a plan comes to: memory in MiB and as a share, examples a second on all replicas, what limits."""
    tpu = find_tpu(plan["tpu"])
    memory = plan["temporary_bytes"] + plan["argument_bytes"]
    is_by_memory = plan["bytes_accessed"] / tpu.bandwidth > plan["flops"] / tpu.peak_flops
    return {
        "memory": memory / 2**20,
        "share": memory / tpu.memory_bytes,
        "examples_per_second": plan["batch_size"] * tpu.num_replicas / plan["roofline_seconds"],
        "limit": "메모리 왕복 memory traffic" if is_by_memory else "연산 operations",
    }


rows = []
for name, model in plans.items():
    for plan in model["plans"]:
        each = describe(plan)
        speed = f"{each['examples_per_second']:,.0f}"
        rows.append((name, plan["tpu"], f"{each['memory']:,.0f} MiB", f"{each['share']:.1%}", speed, each["limit"]))
titles = ("모델 model", "TPU", "메모리 memory", "가운데 share of it", "예/초 examples/s, roofline", "한계 limited by")
display(Table(titles, rows))

# %%
figure = Figure(figsize=(4.2 * len(plans), 2.4), layout="constrained")
for axes, (name, model) in zip(np.atleast_1d(figure.subplots(1, len(plans))), plans.items()):
    speeds = [describe(plan)["examples_per_second"] for plan in model["plans"]]
    bars = axes.barh([plan["tpu"] for plan in model["plans"]], speeds)
    axes.bar_label(bars, [f"{speed:,.0f}" for speed in speeds], padding=3, fontsize="small")
    axes.invert_yaxis()
    axes.set(title=name, xlabel="examples/s, roofline", xlim=(0, max(speeds) * 1.3))
    axes.locator_params(axis="x", nbins=4)
display(Image(png_of(figure)))

# %% [markdown]
# ## 5. 내 글이라면 며칠 · How long for your text
#
# `MEGABYTES`: 글의 크기(UTF-8). `PASSES`: 몇 번 읽을지. 한글 1 MB는 길이 128인 예로 대략 1,500개입니다(아래에서 이
# 저장소의 글로 재어 봅니다). 한계 속도로 계산한 **가장 짧은** 시간입니다.
#
# How many megabytes of text, and how often they are read; how many examples of 128 pieces a megabyte gives is
# measured on the samples. These are the shortest times that there can be.

# %%
MEGABYTES = 1000  # @param {type:"number"}
PASSES = 10  # @param {type:"number"}

from albert_tf.corpus.reader import CorpusReader, find_corpus_files
from albert_tf.tokenization import load_tokenizer

with clock("5 글에서 예의 수 · examples in the text"):
    reader = CorpusReader(find_corpus_files(["samples/corpus"], "DATA"))
    sentences = list(reader.sentences())
    num_pieces = load_tokenizer("models/albert_ko_small").encode_ids(sentences).flat_values.shape[0]
    per_megabyte = num_pieces / 128 / (reader.num_bytes / 1e6)
num_examples = MEGABYTES * per_megabyte * PASSES
print(f"{per_megabyte:,.0f} examples a megabyte with 8,000 pieces; {num_examples:,.0f} examples in all")


def duration(seconds):
    """Returns minutes, hours or days."""
    if seconds < 3600:
        return f"{seconds / 60:,.1f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:,.1f} d"


names = sorted({plan["tpu"] for model in plans.values() for plan in model["plans"]}, key=list(TPUS).index)
rows = []
for name, model in plans.items():
    times = {plan["tpu"]: num_examples / describe(plan)["examples_per_second"] for plan in model["plans"]}
    rows.append((name, *(duration(times[tpu]) if tpu in times else "" for tpu in names)))
display(Table(("", *names), rows))

# %% [markdown]
# ## 6. 직접 물어보기 · Ask the compiler yourself
#
# `jax`와 `libtpu`가 있으면(`pip install 'albert_tf[tpu-compile]'`, TPU가 없는 컴퓨터에서) 작은 모델 하나를 지금
# 컴파일합니다. 일 분쯤 걸립니다. 큰 모델은 `plan_tpu.py`로 하세요.
#
# With `jax` and `libtpu` (`pip install 'albert_tf[tpu-compile]'`, on a machine without TPU) a small model is compiled
# now, in a minute or so. For larger ones take `plan_tpu.py`.

# %%
can_compile = all(importlib.util.find_spec(name) for name in ("jax", "libtpu")) and not has_tpu()
if not can_compile:
    print("jax와 libtpu가 없거나 TPU가 있어서 건너뜁니다. No jax and libtpu here, or a TPU: nothing is compiled.")
else:
    from albert_tf.objectives import AlbertPretraining
    from albert_tf.tpu.planner import CompiledSteps
    from albert_tf.tpu.steps import lower_step, uncounted_flops

    config = AlbertConfig.from_json_file("configs/albert_demo.json")
    if SIZES["live_layers"]:
        config = config.replace(num_hidden_layers=SIZES["live_layers"])
    objective, tpu, (batch_size, length) = AlbertPretraining(config), find_tpu("v5e-1"), (32, 64)
    bar = Bar("compiling", 1)
    with clock("6 컴파일 · compiling"):
        lower = functools.partial(lower_step, objective, batch_size, length)
        steps = CompiledSteps(cache_file=None, timeout=1800)
        with without_messages_of_processes():
            figures = steps.figures(lower, tpu, uncounted_flops(objective, batch_size, length))
        bar.update(1)
    assert figures is not None, "the compiler took longer than half an hour"
    rows = [
        ("메모리 memory", f"{(figures.temporary_bytes + figures.argument_bytes) / 2**20:,.1f} MiB"),
        ("연산 operations", f"{figures.flops / 1e9:,.2f} G"),
        ("메모리 왕복 bytes accessed", f"{figures.bytes_accessed / 1e6:,.1f} MB"),
        ("한계 roofline", f"{figures.roofline_seconds(tpu) * 1e3:.3f} ms"),
        ("예/초 한계 examples/s, roofline", f"{batch_size / figures.roofline_seconds(tpu):,.0f}"),
    ]
    display(Table((f"configs/albert_demo.json, {batch_size} x {length}, {tpu.name}", ""), rows))

# %% [markdown]
# 무엇을 고를까: 들어가기만 하면(2), 예/초(4)를 값으로 나눈 것이 큰 TPU가 이득입니다. 값은 지역과 때에 따라 다르니
# Google의 가격표에서 보세요. 메모리 왕복이 한계인 모델은 최고 속도가 높은 TPU에서도 그만큼 빨라지지 않습니다.
#
# What to choose: of the TPUs that it fits (2), the one with most examples a second (4) for its price, which Google
# tells. Where memory traffic is the limit, a higher peak doesn't help.

# %%
display(clock.table())
