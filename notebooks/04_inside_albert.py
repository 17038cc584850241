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
# # ALBERT의 층이 공유하는 것 · What ALBERT shares
#
# ALBERT의 모든 층은 가중치를 공유합니다. 그래서 파라미터가 얼마나 줄고, 층마다 하는 일이 어떻게 달라지는지
# 살펴봅니다. 부분별 파라미터 수, 층마다 입력을 얼마나 바꾸는지(논문의 그림 1), 층별 예측, 어텐션 맵을 봅니다.
#
# All layers of ALBERT share one set of weights. This notebook shows how many parameters that saves, and what it means
# for the layers: parameters by part, how much each layer changes its input (figure 1 of [the
# paper](https://arxiv.org/abs/1909.11942)), guesses after each layer, and attention maps.

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

# %% [markdown]
# `SIZES`: 그림 1을 위해 작은 모델 두 개를 몇 분 동안 학습합니다. 다른 크기로 다시 할 때는 `WORK`도 바꾸세요.
#
# `SIZES`: for figure 1, two small models are trained for a few minutes. For other sizes also choose another `WORK`.

# %%
WORK = "notebook_output/inside_albert"  # @param {type:"string"}
CONFIG = "configs/albert_base_v2.json"  # 파라미터를 셀 모델 · whose parameters are counted

SIZES = {"config": CONFIG, "num_layers": 8, "num_train_steps": 300, "texts": 200}
if is_test():  # 테스트용으로 작게 · small, for continuous integration
    SIZES = {"config": "configs/albert_demo.json", "num_layers": 2, "num_train_steps": 4, "texts": 8}

# %%
import collections
import itertools

import numpy as np
import tensorflow as tf
from IPython.display import Image, display
from matplotlib.figure import Figure

from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.tasks.classification import drawable
from albert_tf.finetuning.tasks.labelled_text import encode_examples, read_examples
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.tokenization import load_tokenizer
from notebooks.helpers import Clock, TrainingWatch, find_strategy, png_of, table

MODEL = "models/albert_ko_small"
clock, strategy = Clock(), find_strategy()

# %% [markdown]
# ## 1. 파라미터의 분포 · Where the parameters are
#
# `sharing`은 층끼리 공유하는 것입니다. `all`이 ALBERT, `none`이 BERT에 해당합니다.
#
# `sharing` says what layers share: `all` is ALBERT, `none` is what BERT does.

# %%
PARTS = {
    "word embeddings": "encoder/embeddings/word_embeddings",
    "other embeddings": "encoder/embedding",  # 위치, 구획, 투영 · positions, segments, the projection
    "attention": "encoder/attention_layers",
    "feed-forward": "encoder/feed_forward_layers",
    "pooler and heads": "",
}


def count_parameters(config):
    """Returns the number of a model's parameters in each of PARTS."""
    counts = collections.Counter()
    for name, variable in named_variables(AlbertForPreTraining(config)).items():
        part = next(part for part, prefix in PARTS.items() if name.startswith(prefix))
        counts[part] += int(np.prod(variable.shape))
    return counts


with clock("1 파라미터 · parameters"):
    config = AlbertConfig.from_json_file(SIZES["config"])
    kinds = ("all", "attention", "ffn", "none")
    counts = {sharing: count_parameters(config.replace(sharing=sharing)) for sharing in kinds}
    wide = config.replace(sharing="none", embedding_size=config.hidden_size)
    counts["none, E = H"] = count_parameters(wide)

rows = [(name, *(f"{each[part]:,}" for part in PARTS), f"{each.total():,}") for name, each in counts.items()]
display(table(("sharing", *PARTS, "total"), rows))

# %%
figure = Figure(figsize=(8, 2.9), layout="constrained")
axes = figure.subplots()
left = np.zeros(len(counts))
for part in PARTS:
    millions = np.array([each[part] for each in counts.values()]) / 1e6
    axes.barh(list(counts), millions, left=left, label=part)
    left += millions
for number, total in enumerate(left):
    axes.text(total, number, f" {total:.1f} M", va="center")
axes.invert_yaxis()
axes.set(xlabel="million parameters", title=os.path.basename(SIZES["config"]), xlim=(0, left.max() * 1.12))
axes.legend(fontsize="small", loc="upper right")
display(Image(png_of(figure)))

# %% [markdown]
# 파라미터를 두 가지 방법으로 줄입니다. 층이 가중치를 공유하고(`all`), 임베딩을 작게 만들어 은닉 크기로 투영합니다(`E
# = H`와 그 윗줄의 차이). 다만 **파라미터가 적다고 계산이나 메모리가 줄지는 않습니다.** 블록은 여전히 층의 수만큼
# 계산합니다(`docs/tpu.md`).
#
# Two things save parameters: layers share weights (`all`), and narrow embeddings are projected to the hidden size
# (the difference between `E = H` and the row above it). But fewer parameters do not mean less computation or less
# memory: the block is still applied as many times (`docs/tpu.md`).
#
# ## 2. 그림 1 · Figure 1
#
# 논문은 층에 들어가는 벡터와 나오는 벡터의 거리(L2)와 각도를 층마다 측정했습니다. 논문의 모델은 24층의 BERT-large와
# ALBERT-large이고, **여기서는 8층에 너비 128인 작은 모델 두 개**를 포함된 텍스트 0.8 MB로 몇백 스텝만 학습합니다.
# 하나는 가중치를 공유하고, 하나는 공유하지 않습니다. 여기에 포함된 모델(4층, 공유하지 않음)을 더합니다.
#
# The paper measured how far (L2) and by what angle each layer moves its input, in BERT-large and ALBERT-large of 24
# layers. Here two small models of 8 layers, 128 wide, are trained for a few hundred steps on the samples, one whose
# layers share their weights and one whose layers don't; the included model, whose 4 layers share nothing, is added.
# So we ask the paper's question of different models.

# %%
from albert_tf.pretraining_data.making.builder import build
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.masking import MaskingOptions, default_max_predictions
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.reading.documents import CorpusReader, find_corpus_files
from albert_tf.runs.phases import data_settings, make_phase, objective_of
from albert_tf.training import RunSettings, TrainingRun

tokenizer = load_tokenizer(MODEL)
small = AlbertConfig.from_json_file("configs/albert_demo.json").replace(
    vocab_size=len(tokenizer), num_hidden_layers=SIZES["num_layers"]
)

with clock("2 학습 데이터 · training data"):
    paths = find_corpus_files(["samples/corpus", "samples/unlabelled_reviews"], "DATA")
    train_path, held_out_path = (os.path.join(WORK, "data", f"{name}.tfrecord") for name in ("train", "held_out"))
    masking = MaskingOptions(default_max_predictions(64, 0.15, False), ngram=1)
    options = BuilderOptions(64, masking)
    build(CorpusReader(paths), tokenizer, options, [train_path], [held_out_path])


def pretrain(name, config):
    """Returns a model before, and the same after pre-training in a folder of WORK."""
    shards = find_shards([train_path], config)
    objective = objective_of(config, shards)
    steps = SIZES["num_train_steps"]
    settings = RunSettings(
        num_train_steps=steps,
        train_batch_size=16,
        learning_rate=2e-3,
        num_warmup_steps=steps // 10,
        optimizer="muon",
        bias_correction=True,
        iterations_per_loop=10,
    )
    models = []
    for _ in range(2):
        tf.keras.utils.set_random_seed(settings.random_seed)
        with strategy.scope():
            models.append(objective.make_model())
    folder = os.path.join(WORK, name)
    watch = TrainingWatch(folder, steps, ("masked_lm_loss", "masked_lm_accuracy"), name)
    run = TrainingRun(folder, objective, models[1], settings, tokenizer, on_metrics=watch)
    run.train(make_phase(objective, shards, settings), data_settings([shards], [steps]))
    return models


# %%
with clock("2 학습, 가중치를 공유하는 모델 · training, shared layers"):
    random_shared, shared = pretrain("shared", small)

# %%
with clock("2 학습, 공유하지 않는 모델 · training, layers of their own"):
    random_unshared, unshared = pretrain("unshared", small.replace(sharing="none"))

# %%
reviews = read_examples("samples/reviews/dev.tsv", DATASETS["tsv"], needs_label=True)[: SIZES["texts"]]
batch = encode_examples(tokenizer, reviews, 64)


def movements(model):
    """Returns the mean L2 distance and the mean angle in degrees between input and output of each layer."""
    states = model.encoder(batch, output_hidden_states=True)["hidden_states"]
    states = [each.numpy()[batch["input_mask"] == 1] for each in states]  # 패딩 토큰은 빼고 · without padding
    found = []
    for before, after in itertools.pairwise(states):
        lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        cosine = np.clip((before * after).sum(axis=1) / lengths, -1, 1)
        found.append((np.linalg.norm(after - before, axis=1).mean(), np.degrees(np.arccos(cosine)).mean()))
    return np.array(found)


with clock("2 그림 1 · figure 1"):
    shipped = AlbertForPreTraining.from_pretrained(MODEL, verbose=False)
    lines = {
        "shared layers": (shared, "C0o-"),
        "shared layers, random weights": (random_shared, "C0:"),
        "layers of their own": (unshared, "C1s-"),
        "layers of their own, random weights": (random_unshared, "C1:"),
        "albert_ko_small, layers of their own": (shipped, "C2^-"),
    }
    moved = {name: movements(model) for name, (model, _) in lines.items()}

figure = Figure(figsize=(9.5, 3.6), layout="constrained")
for axes, column, title in zip(figure.subplots(1, 2), range(2), ("L2 distance", "angle (degrees)")):
    for name, (_, style) in lines.items():
        axes.plot(range(1, len(moved[name]) + 1), moved[name][:, column], style, label=name, markersize=4)
    axes.set(title=f"input to output of a layer: {title}", xlabel="layer", ylim=(0, None))
    axes.grid(alpha=0.3)
axes.legend(fontsize="x-small")
display(Image(png_of(figure)))

# %%
spread = [
    (name, f"{each[1:, 0].mean():.2f}", f"{np.abs(np.diff(each[1:, 0])).mean():.2f}", f"{each[1:, 1].mean():.1f}°")
    for name, each in moved.items()
]
titles = ("둘째 층부터 · from the second layer on", "L2", "층 사이의 변화 · change between layers", "각도 angle")
display(table(titles, spread))

# %% [markdown]
# 논문의 관찰은 두 가지입니다. 가중치를 공유하면 층마다 변화가 **고르고**, 그래도 거리가 0으로 수렴하지는
# **않습니다**(같은 블록을 반복해도 고정점에 도달하지 않습니다). 위의 표에서 '층 사이의 변화'가 작을수록 고르고,
# 마지막 층의 거리가 0보다 크면 수렴하지 않은 것입니다. 작고 조금만 학습한 모델이므로 논문의 결과를 확인하거나
# 반박하는 것으로 보지는 마세요.
#
# The paper observed two things: with shared weights the layers change their input more evenly, and yet the distance
# doesn't converge to 0, so repeating the same block does not reach a fixed point. In the table, a smaller change
# between layers means more even, and a distance above 0 in the last layer means no convergence. Models this small,
# trained this little, neither confirm nor refute the paper.
#
# ## 3. 층별 예측 · Guesses after each layer
#
# 마지막 층의 벡터를 읽도록 학습된 헤드로 앞 층의 벡터를 읽어 봅니다. 앞 층의 예측은 거칠지만, 층을 지나면서 문맥이
# 반영되는 것을 볼 수 있습니다.
#
# The head has learnt to read the last layer; here it reads the earlier ones too. Their guesses are rough, but you can
# see how context is added layer by layer.

# %%
QUESTIONS = ["배우들 연기가 정말 [MASK]", "이 [MASK] 보고 울었어요 ㅠㅠ", "국물이 [MASK] 면발이 좋아요", "돈이 [MASK]"]


def guesses_after_each_layer(text, count=3):
    """Returns the best guesses for the mask of a text, after the embeddings and after each layer."""
    before, after = (tokenizer.tokenize(part) for part in text.split("[MASK]"))
    pieces = ["[CLS]", *before, "[MASK]", *after, "[SEP]"]
    ids = tf.constant([[tokenizer.vocabulary.id_of(piece) for piece in pieces]])
    states = shipped.encoder({"input_ids": ids}, output_hidden_states=True)["hidden_states"]
    words = tf.convert_to_tensor(shipped.encoder.embeddings.word_embeddings)
    position = tf.constant([[pieces.index("[MASK]")]])
    logits = [shipped.masked_lm_head(each, words, position)[0, 0] for each in states]
    return ["  ".join(tokenizer.vocabulary.pieces[i] for i in tf.math.top_k(each, count).indices) for each in logits]


columns = [f"{number}층 layer {number}" for number in range(1, shipped.config.num_hidden_layers + 1)]
display(table(("", "임베딩 embeddings", *columns), [(text, *guesses_after_each_layer(text)) for text in QUESTIONS]))

# %% [markdown]
# ## 4. 어텐션 맵 · Attention maps
#
# 포함된 모델의 층(행)과 헤드(열)마다, 각 토큰(세로)이 어느 토큰(가로)을 보는지 나타냅니다. 진할수록 많이 봅니다.
# `neighbors`로 초기화한 모델이므로(`docs/korean_small_model.md`) 바로 옆을 보는 헤드가 남아 있습니다.
#
# For each layer (row) and head (column) of the included model: which pieces (across) each piece (down) looks at;
# darker means more. Its attention was initialised to look at neighbours (`docs/korean_small_model.md`), and some
# heads still do.

# %%
import albert_tf
from notebooks.helpers import read_attention

TEXT = "기대 안 했는데 배우들 연기가 정말 좋았어요"  # 내 문장으로 바꿔 보세요 · your own sentence
pieces, attention = read_attention(albert_tf.load(MODEL), TEXT, max_pieces=24)
names, font = drawable(pieces, "piece")

layers, heads, length, _ = attention.shape
figure = Figure(figsize=(2.3 * heads + 0.8, 2.2 * layers + 0.6), layout="constrained")
for (layer, head), axes in np.ndenumerate(figure.subplots(layers, heads, sharex=True, sharey=True)):
    axes.imshow(attention[layer, head], cmap="Blues", vmin=0, vmax=1)
    axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8)
    axes.set_xticks(range(length), names, rotation=90, fontsize=6, fontfamily=font)
    axes.set_yticks(range(length), names, fontsize=6, fontfamily=font)
display(Image(png_of(figure, dpi=90)))
if names is not pieces:  # 한글 글꼴이 없을 때 · where no font has Hangul
    display(table(("", "piece"), zip(names, pieces)))

# %% [markdown]
# 여러 리뷰에서 평균하면 헤드마다의 패턴이 보입니다. 다음은 몇 토큰 앞(-)이나 뒤(+)를 얼마나 보는지 나타냅니다.
#
# Averaged over reviews, each head shows a pattern: how much it looks at the piece this many positions before (-) or
# after (+).

# %%
with clock("4 어텐션 · attention"):
    probabilities = shipped.encoder(batch, output_attentions=True)["attentions"]
    lengths = batch["input_mask"].sum(axis=1)
    reach = 6
    habits = np.zeros([layers, heads, 2 * reach + 1])
    for layer, each in enumerate(probabilities):
        each = each.numpy()
        for offset in range(-reach, reach + 1):
            shares = []
            for text, length in enumerate(lengths):
                inside = each[text, :, 1 : length - 1, 1 : length - 1]  # [CLS]와 [SEP]는 빼고 · without these
                if length - 2 > abs(offset):
                    shares.append(np.diagonal(inside, offset, 1, 2).mean(axis=1))
            habits[layer, :, offset + reach] = np.mean(shares, axis=0)

figure = Figure(figsize=(9.5, 2.7), layout="constrained")
for layer, axes in enumerate(figure.subplots(1, layers, sharey=True)):
    for head in range(heads):
        axes.plot(range(-reach, reach + 1), habits[layer, head], ".-", label=f"head {head + 1}")
    axes.set(title=f"layer {layer + 1}", xlabel="places away")
    axes.grid(alpha=0.3)
axes.legend(fontsize="x-small")
display(Image(png_of(figure)))

# %%
display(clock.table())
