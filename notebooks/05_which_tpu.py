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
# TPU를 빌리기 전에, 모델의 한 스텝이 메모리를 얼마나 쓰는지, 배치가 얼마까지 들어가는지, 며칠이 걸리는지를 TPU
# 컴파일러로 계산합니다. **TPU는 필요 없습니다.** 여기 있는 값은 모두 `albert-tf plan-tpu`가 컴파일러(libtpu)에서 얻은
# 것이며, 실제 TPU에서 측정한 값은 없습니다(`docs/tpu.md`).
#
# Before you rent a TPU, its compiler can tell how much memory a step of a model takes, how large a batch can be, and
# how many days training would take. No TPU is needed. All figures here come from the compiler (libtpu), by
# `albert-tf plan-tpu`; none was measured on a TPU (`docs/tpu.md`).

# %%
# 준비: 이 셀을 먼저 실행하세요. Set-up: run this cell first.
REPOSITORY = ""  # @param {type:"string"}
# ↑ albert_tf를 받아 올 git 주소 (Colab에서만). Where to clone albert_tf from; only Colab needs it.

import os
import pathlib
import subprocess
import sys

folders = [pathlib.Path.cwd(), *pathlib.Path.cwd().parents, pathlib.Path("albert_tf")]
root = next((folder for folder in folders if (folder / "notebooks" / "helpers.py").is_file()), None)
if root is None:
    assert REPOSITORY, "REPOSITORY에 git 주소를 적어 주세요. Write the address of the git repository into REPOSITORY."
    subprocess.run(["git", "clone", "-q", "--depth=1", REPOSITORY, "albert_tf"], check=True)
    root = pathlib.Path("albert_tf")
os.chdir(root)
sys.path.insert(0, os.getcwd())

from notebooks.helpers import install, is_test

install()

# %%
import functools
import importlib.util
import json

import numpy as np
from IPython.display import Image, display
from matplotlib.figure import Figure

from albert_tf.config import AlbertConfig
from albert_tf.runs.tpu_planner import TPUS, find_tpu
from albert_tf.training.devices import has_tpu
from notebooks.helpers import Clock, png_of, table

SIZES = {"live_layers": None}  # None: 설정 그대로 · as the config says
if is_test():  # 테스트용으로 작게 · small, for continuous integration
    SIZES = {"live_layers": 1}

clock = Clock()

# %% [markdown]
# ## 1. 빌릴 수 있는 TPU · What can be rented
#
# 복제본(replica)마다의 메모리, 최고 성능(bfloat16), 메모리 대역폭입니다(Google이 공개한 값).
#
# For each replica: memory, peak in bfloat16, and memory bandwidth, as Google publishes them.

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
display(table(titles, rows))

# %% [markdown]
# ## 2. 가장 큰 배치 · The largest batch
#
# v5e 한 개(16 GB)에 들어가는 가장 큰 배치입니다. LAMB, bfloat16, 토큰의 15%를 가림. `python -m
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
display(table([cell.replace("`", "") for cell in head], batches))

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
# 오른쪽 그래프가 거의 평평합니다. **메모리를 정하는 것은 토큰의 수**이고 예제의 길이가 아닙니다. 파라미터를 공유해도
# 메모리는 거의 줄지 않습니다. 역전파를 위해 층마다의 결과를 저장하기 때문입니다. `--remat=block`은 저장하지 않고 다시
# 계산합니다.
#
# On the right, the lines are nearly flat: what counts is the number of pieces, not the length of the examples.
# Sharing weights saves almost no memory here, because a step stores what every layer computed; `--remat=block`
# recomputes it instead.
#
# ## 3. 한 스텝의 비용 · What a step costs
#
# ALBERT-base, 길이 512인 예제 32개, v5e 칩 하나입니다. `python -m benchmarks.tpu_step`으로 얻은
# `docs/performance.md`의 표에 **한계(roofline)** 를 더합니다. 한계는 그 스텝의 연산과 메모리 접근이 공개된 최고
# 성능에서 걸리는 시간 가운데 긴 쪽이며, 실제로는 이보다 느립니다.
#
# ALBERT-base, 32 examples of 512 pieces, on one v5e chip: the table of `docs/performance.md`, made by `python -m
# benchmarks.tpu_step`, with the roofline added: the time that the operations or the memory traffic would take at the
# published limits, whichever is longer. No real run is that fast.


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
titles = ("", "연산 operations", "메모리 접근 bytes accessed", "메모리 memory", "한계 roofline", "예제/초 examples/s")
display(table(titles, rows))

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
# 두 막대 가운데 긴 쪽이 한계입니다. 어텐션 커널이 없으면(`plain`) 메모리 접근이, 있으면 연산이 한계가 됩니다.
#
# The longer of the two bars is the limit: memory traffic without the attention kernels (`plain`), operations with
# them.
#
# ## 4. 어느 모델에 어느 TPU · Which TPU for which model
#
# 한국어 모델 세 개를 여러 TPU용으로 컴파일한 값입니다. 복제본마다의 배치와 길이는 표에 있습니다. 값과 명령은
# `notebooks/plans.json`에 있으며, 다른 TPU나 다른 모델의 결과를 그 파일에 추가하면 여기에 함께 나옵니다.
#
# - **들어갈 배치**는 추정값이며, 남는 메모리를 예제 하나의 메모리로 나눈 것입니다. 2절의 표와 비교하면 base, 길이
#   512, v5e에서 추정값이 조금 작습니다. 정확한 값은 `--train_batch_size` 없이 `albert-tf plan-tpu`로 찾습니다. 컴파일한
#   배치와 차이가 클수록 추정값을 믿기 어렵습니다.
# - **연산기 사용률**은 한계(3절)에 도달했을 때의 값, 즉 가능한 최댓값입니다. 100%보다 작으면 메모리를 기다립니다.
#
# Three Korean models, compiled for several TPUs; the table has the batch and length on each replica. The figures are
# in `notebooks/plans.json`, with the commands that made them. Other TPUs or models that you add to that file are
# shown here too.
#
# - **The batch that fits** is an estimate: the memory left by the weights, divided by that of one example. For base
#   at length 512 on v5e it is a little lower than the value in part 2. `albert-tf plan-tpu` without
#   `--train_batch_size` finds the exact number; the further an estimate is from the compiled batch, the less
#   reliable it is.
# - **The use of the peak** is the value at the limit (part 3), so the best possible one. Below 100% the chip waits
#   for its memory.

# %%
plans = json.loads(pathlib.Path("notebooks/plans.json").read_text(encoding="utf-8"))
for model in plans.values():
    print(model["command"])


def describe(model, plan):
    """Returns what a plan comes to: bytes of memory, batch that fits, pieces a second, use of the peak, intensity."""
    tpu = find_tpu(plan["tpu"])
    of_an_example = plan["temporary_bytes"] / plan["batch_size"]
    examples_per_second = plan["batch_size"] * tpu.num_replicas / plan["roofline_seconds"]
    return {
        "memory": plan["temporary_bytes"] + plan["argument_bytes"],
        "largest_batch": int((tpu.memory_bytes - plan["argument_bytes"]) / of_an_example) // 8 * 8,
        "examples_per_second": examples_per_second,
        "pieces_per_second": examples_per_second * model["max_seq_length"],
        "use": plan["flops"] / plan["roofline_seconds"] / tpu.peak_flops,
        "intensity": plan["flops"] / plan["bytes_accessed"],
    }


rows = []
for name, model in plans.items():
    for plan in model["plans"]:
        tpu, each = find_tpu(plan["tpu"]), describe(model, plan)
        rows.append(
            (
                name,
                plan["tpu"],
                f"{plan['batch_size']} x {model['max_seq_length']}",
                f"{each['memory'] / 2**20:,.0f} MiB",
                f"{each['memory'] / tpu.memory_bytes:.1%}",
                f"{each['largest_batch']:,}",
                f"{each['examples_per_second']:,.0f}",
                f"{each['use']:.0%}",
                "메모리 접근 memory traffic" if each["use"] < 0.995 else "연산 operations",
            )
        )
titles = (
    "모델 model",
    "TPU",
    "배치 batch",
    "메모리 memory",
    "메모리 비율 share of it",
    "들어갈 배치 batch that fits",
    "예제/초 examples/s, roofline",
    "연산기 사용률 use of the peak",
    "한계 limited by",
)
display(table(titles, rows))

# %%
figure = Figure(figsize=(4.2 * len(plans), 2.4), layout="constrained")
for axes, (name, model) in zip(np.atleast_1d(figure.subplots(1, len(plans))), plans.items()):
    speeds = [describe(model, plan)["examples_per_second"] for plan in model["plans"]]
    bars = axes.barh([plan["tpu"] for plan in model["plans"]], speeds)
    axes.bar_label(bars, [f"{speed:,.0f}" for speed in speeds], padding=3, fontsize="small")
    axes.invert_yaxis()
    title = f"{name}, {model['max_seq_length']} pieces"
    axes.set(title=title, xlabel="examples/s, roofline", xlim=(0, max(speeds) * 1.35))
    axes.locator_params(axis="x", nbins=4)
display(Image(png_of(figure)))

# %% [markdown]
# 이유는 다음 그래프에 있습니다. 가로축은 한 스텝이 메모리에서 읽고 쓰는 1바이트당 연산 수이고, 세로축은 복제본 하나가
# 낼 수 있는 속도입니다. 기울어진 부분에 있는 모델은 메모리를 기다리고, 평평한 부분에 있는 모델은 연산기를 모두
# 씁니다. 꺾이는 곳이 오른쪽에 있는 TPU일수록 큰 모델이어야 성능을 다 쓸 수 있습니다.
#
# The next plot shows why: the horizontal axis is the number of operations in a step for each byte it reads or writes,
# the vertical axis the speed that one replica can reach. A model on the slope waits for memory, one on the plateau
# uses all of the chip. The further to the right a TPU bends, the larger a model has to be to be worth it.

# %%
figure = Figure(figsize=(7.5, 3.6), layout="constrained")
axes = figure.subplots()
markers = dict(zip(plans, "os^Dv"))
compiled_for = sorted({plan["tpu"] for model in plans.values() for plan in model["plans"]}, key=list(TPUS).index)
chips = {}  # one line for TPUs of one kind of chip
for name in compiled_for:
    chips.setdefault(name.partition("-")[0], find_tpu(name))
intensities = np.geomspace(10, 1000, 200)
colors = {}
for chip, tpu in chips.items():
    speeds = np.minimum(tpu.peak_flops, intensities * tpu.bandwidth) / 1e12
    (line,) = axes.plot(intensities, speeds, linewidth=1, label=chip)
    colors[chip] = line.get_color()
for name, model in plans.items():
    for plan in model["plans"]:
        tpu, each = find_tpu(plan["tpu"]), describe(model, plan)
        color = colors[plan["tpu"].partition("-")[0]]
        axes.plot(each["intensity"], each["use"] * tpu.peak_flops / 1e12, markers[name], color=color, markersize=6)
    axes.plot([], [], markers[name], color="gray", label=f"{name}, {model['max_seq_length']} pieces")
axes.set(xscale="log", yscale="log", xlabel="operations a byte of memory traffic", ylabel="TFLOPS of a replica")
axes.grid(alpha=0.3)
axes.legend(fontsize="small", ncols=2)
display(Image(png_of(figure)))

# %% [markdown]
# ## 5. 내 텍스트라면 며칠 · How long for your text
#
# `MEGABYTES`는 텍스트의 크기(UTF-8), `PASSES`는 에폭 수입니다. 1 MB가 몇 토큰인지는 포함된 모델의 어휘
# 사전(8,000토큰)으로 이 저장소의 샘플에서 측정합니다. 어휘 사전이 더 크면 토큰 수는 줄어듭니다. 한계 속도로 계산한
# **가장 짧은** 시간입니다. `SHARE`는 실제로 한계의 얼마에 도달하는지입니다. 실행해 보기 전에는 알 수 없으며,
# `--peak_tflops`를 주고 실행하면 출력됩니다.
#
# `MEGABYTES` is the size of the text, `PASSES` the number of epochs. The number of pieces in a megabyte is measured
# on the samples with the 8,000 pieces of the included model; a larger vocabulary needs fewer. These are the
# **shortest** possible times. `SHARE` is the share of the limit that a run really reaches: you can't know it before
# running, and a command with `--peak_tflops` prints it.

# %%
MEGABYTES = 1000  # @param {type:"number"}
PASSES = 10  # @param {type:"number"}
SHARE = 1.0  # @param {type:"number"}

from albert_tf.reading.documents import CorpusReader, find_corpus_files
from albert_tf.tokenization import load_tokenizer

with clock("5 텍스트의 토큰 수 · pieces in the text"):
    reader = CorpusReader(find_corpus_files(["samples/corpus"], "DATA"))
    sentences = list(reader.sentences())
    num_pieces = load_tokenizer("models/albert_ko_small").encode_ids(sentences).flat_values.shape[0]
    per_megabyte = num_pieces / (reader.num_bytes / 1e6)
to_read = MEGABYTES * per_megabyte * PASSES
print(f"{per_megabyte:,.0f} pieces a megabyte; {to_read:,.0f} pieces to read")


def duration(seconds):
    """Returns minutes, hours or days."""
    if seconds < 3600:
        return f"{seconds / 60:,.1f} min"
    return f"{seconds / 3600:,.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:,.1f} d"


rows = []
for name, model in plans.items():
    times = {plan["tpu"]: to_read / describe(model, plan)["pieces_per_second"] / SHARE for plan in model["plans"]}
    rows.append((name, *(duration(times[tpu]) if tpu in times else "" for tpu in compiled_for)))
display(table(("", *compiled_for), rows))

# %% [markdown]
# ## 6. 직접 컴파일하기 · Run the compiler yourself
#
# `jax`와 `libtpu`가 있으면(`pip install 'albert_tf[tpu-compile]'`, TPU가 없는 컴퓨터에서) 작은 모델 하나를 지금
# 컴파일합니다. 약 1분이 걸립니다. 컴파일한 결과는 `notebook_output/`에 남습니다. 더 큰 모델에는 `albert-tf plan-tpu`를
# 쓰세요.
#
# With `jax` and `libtpu` (`pip install 'albert_tf[tpu-compile]'`, on a machine without TPU) a small model is compiled
# now, in a minute or so; the result is kept in `notebook_output/`. For larger models use `albert-tf plan-tpu`.

# %%
can_compile = all(importlib.util.find_spec(name) for name in ("jax", "libtpu")) and not has_tpu()
if not can_compile:
    print("jax와 libtpu가 없거나 TPU가 있어서 건너뜁니다. No jax and libtpu here, or a TPU: nothing is compiled.")
else:
    from albert_tf.objectives import make_objective
    from albert_tf.runs.tpu_compiler import lower_step, uncounted_flops
    from albert_tf.runs.tpu_planner import CompiledSteps

    config = AlbertConfig.from_json_file("configs/albert_demo.json")
    if SIZES["live_layers"]:
        config = config.replace(num_hidden_layers=SIZES["live_layers"])
    objective, tpu, (batch_size, length) = make_objective("albert", config), find_tpu("v5e-1"), (32, 64)
    with clock("6 컴파일 · compiling"):
        lower = functools.partial(lower_step, objective, batch_size, length)
        steps = CompiledSteps("notebook_output/which_tpu/compiled_steps.json", timeout=1800)
        # 컴파일하는 프로세스의 메시지는 숨김 · what the compiler's process says of its start is left out
        standard_error, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            figures = steps.figures(lower, tpu, uncounted_flops(objective, batch_size, length))
        finally:
            os.dup2(standard_error, 2)
    assert figures is not None, "the compiler took longer than half an hour"
    rows = [
        ("메모리 memory", f"{(figures.temporary_bytes + figures.argument_bytes) / 2**20:,.1f} MiB"),
        ("연산 operations", f"{figures.flops / 1e9:,.2f} G"),
        ("메모리 접근 bytes accessed", f"{figures.bytes_accessed / 1e6:,.1f} MB"),
        ("한계 roofline", f"{figures.roofline_seconds(tpu) * 1e3:.3f} ms"),
        ("예제/초 한계 examples/s, roofline", f"{batch_size / figures.roofline_seconds(tpu):,.0f}"),
    ]
    display(table((f"configs/albert_demo.json, {batch_size} x {length}, {tpu.name}", ""), rows))

# %% [markdown]
# 고르는 방법: 모델이 들어가는 TPU(2절, 4절) 가운데 가격 대비 초당 예제 수(4절)가 가장 큰 것이 유리합니다. 가격은
# 지역과 시기에 따라 다르므로 Google의 가격표를 확인하세요. 작은 모델은 어느 TPU에서나 메모리를 기다리므로, 최고
# 성능이 높은 TPU라고 해서 그만큼 빨라지지 않습니다. albert_small은 v5p의 칩 네 개에서 v6e의 칩 여덟 개만큼 빠르고,
# 그보다 작은 모델은 칩 하나(v5e-1)로 충분합니다. base는 v5e와 v5p에서 연산기를 거의 다 쓰고, v6e에서는 절반도 쓰지
# 못하지만 그래도 가장 빠릅니다. v2에는 base의 작은 배치만 들어가고, 가장 느립니다.
#
# What to choose: among the TPUs that the model fits (parts 2 and 4), the one with the most examples a second (part 4)
# for its price, which you find in Google's price list. Small models wait for memory on every TPU, so a higher peak
# helps them little: albert_small is as fast on four chips of v5p as on eight of v6e, and for smaller models a single
# chip (v5e-1) is enough. base uses nearly all of v5e and v5p; it uses less than half of v6e, and is still fastest
# there. Only small batches of base fit a v2, which is the slowest.

# %%
display(clock.table())
