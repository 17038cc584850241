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
# # 리뷰 분류기 만들기 · Fine-tuning on labelled reviews
#
# 포함된 작은 모델 `models/albert_ko_small`을 라벨이 있는 리뷰로 미세 조정하고, 무엇을 틀리는지 분석한 다음,
# 내보내서(export) 문장을 예측해 봅니다. 데이터는 NSMC와 같은 형식(`id`, `document`, `label`)이면 됩니다.
#
# The included small model is fine-tuned on labelled reviews; then we look at its mistakes, export it, and let it
# predict. Any data in NSMC's format will do: tab-separated, with the columns `document` and `label`.
#
# 마지막 셀에 부분별로 걸린 시간이 나옵니다. The last cell says how long each part took.

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
# ## 데이터와 크기 · Data and sizes
#
# `DATA`: `"samples"`는 이 프로젝트를 위해 쓴 리뷰 1,400건, `"upload"`는 내 파일 업로드(Colab), 그 밖에는 폴더
# 이름입니다. 드라이브라면 `/content/drive/MyDrive/...`. 폴더에는 `ratings_train.txt`와 `ratings_test.txt`(NSMC), 또는
# `train.tsv`와 `dev.tsv`가 있어야 합니다. 다른 데이터로 다시 할 때는 결과 폴더인 `WORK`도 바꾸세요.
#
# `"samples"`: 1,400 reviews written for this project; `"upload"`: choose files of your own (Colab); otherwise a
# folder, in Google Drive `/content/drive/MyDrive/...`, with `ratings_train.txt` and `ratings_test.txt` (NSMC) or
# `train.tsv` and `dev.tsv`. For other data also choose another `WORK`, the folder of results.

# %%
DATA = "samples"  # @param ["samples", "upload"] {allow-input: true}
WORK = "notebook_output/fine_tuning"  # @param {type:"string"}

SIZES = {"num_train_steps": None, "explained": 4}  # None: 라벨 수에 맞춰 고름 · chosen by the number of labels
if is_test():  # 테스트용으로 작게 · small, for continuous integration
    SIZES = {"num_train_steps": 6, "explained": 1}

# %%
import itertools
import shutil

import numpy as np
import tensorflow as tf
from IPython.display import Image, display
from matplotlib.figure import Figure

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, runner
from albert_tf.finetuning.datasets import DATASETS, find_files
from albert_tf.finetuning.defaults import (
    choose_max_seq_length,
    default_token_dropout,
    finetuning_settings,
    with_default_dropout,
)
from albert_tf.finetuning.tasks.classification import confusion_matrix, drawable
from albert_tf.finetuning.tasks.labelled_text import labels_of, read_examples
from albert_tf.tokenization import load_tokenizer
from albert_tf.training import TrainingRun
from notebooks.helpers import Clock, TrainingWatch, find_data, find_strategy, marked, pieces, png_of, table

MODEL = "models/albert_ko_small"
clock, strategy = Clock(), find_strategy()

# %% [markdown]
# ## 1. 데이터 · The data

# %%
with clock("1 데이터 · data"):
    folder = find_data(DATA, "samples/reviews")
    is_nsmc = os.path.exists(os.path.join(folder, "ratings_train.txt"))
    files = DATASETS["nsmc" if is_nsmc else "tsv"]
    train_path, dev_path = find_files(folder, files.train), find_files(folder, files.dev)
    train, dev = (read_examples(path, files, needs_label=True) for path in (train_path, dev_path))
    labels = files.labels or labels_of(train)

counts = [[label, *(sum(each.label == label for each in part) for part in (train, dev))] for label in labels]
display(table(("라벨 label", "학습 train", "검증 dev"), counts))

# %% [markdown]
# 모델은 글자가 아니라 **토큰(piece)** 을 읽습니다. 색이 바뀌는 곳이 토큰의 경계입니다.
#
# The model reads pieces. Each change of colour is the border of a piece.

# %%
tokenizer = load_tokenizer(MODEL)
rows = []
for example in train[:6]:
    encoding = tokenizer.encode(example.text)
    rows.append((example.label, pieces(example.text, encoding.offsets), len(encoding.tokens)))
display(table(("라벨 label", "리뷰 review", "토큰 pieces"), rows))

# %% [markdown]
# ## 2. 학습 · Training
#
# 같은 모델을 두 번 학습합니다. 한 번은 리뷰 658,000건으로 사전 학습한 가중치에서, 한 번은 무작위 초기화에서
# 시작합니다. 둘의 차이가 **사전 학습의 효과**입니다. 학습률, 에폭 수, 드롭아웃은 `run_classifier.py`의 기본값과
# 같습니다. 검증용 리뷰는 마지막에 한 번만 평가합니다.
#
# The same model is trained twice: from the included weights, which have seen 658,000 film reviews without labels, and
# from random weights. The difference is what pre-training is worth. Learning rate, epochs and dropout are the
# defaults of `run_classifier.py`. The dev file is used only after the last step, so nothing is chosen on the texts
# that are used for evaluation.

# %%
config = AlbertConfig.from_json_file(f"{MODEL}/albert_config.json")
task = Classification(config, labels, files)
length = choose_max_seq_length(task, train, tokenizer)
train_file = runner.load_file(task, train_path, tokenizer, length)
dev_file = runner.load_file(task, dev_path, tokenizer, length)
task.config = with_default_dropout(config, train_file.num_rows)


def train_classifier(name, init_checkpoint):
    """Trains in a folder of WORK; returns the run and its predictions of the dev file."""
    given = {"num_train_steps": SIZES["num_train_steps"]} if SIZES["num_train_steps"] else {}
    settings = finetuning_settings(
        config, train_file.num_rows, init_checkpoint=init_checkpoint, iterations_per_loop=10, **given
    )
    output_dir = os.path.join(WORK, name)
    tf.keras.utils.set_random_seed(settings.random_seed)
    with strategy.scope():
        model = task.make_model()
    watch = TrainingWatch(output_dir, settings.num_train_steps, ("loss", "accuracy"), name)
    run = TrainingRun(output_dir, task, model, settings, tokenizer, on_metrics=watch)
    hidden = default_token_dropout(config, task.may_hide_pieces)
    runner.train(run, train_file, dev_file, token_dropout=hidden)
    runner.evaluate(run, dev_file)
    return run, runner.predict(run, dev_file, batch_size=64)


# %%
with clock("2 학습, 사전 학습한 모델 · training from the shipped model"):
    run, predictions = train_classifier("pretrained", MODEL)

# %%
with clock("2 학습, 무작위 가중치 · training from random weights"):
    _, predictions_from_random = train_classifier("random_weights", None)

# %%
truth = np.array([example.label for example in dev])


def accuracy(found):
    """Returns a share with its standard error, as text."""
    share = np.mean(truth == np.array(found))
    return f"{share:.1%} ± {np.sqrt(share * (1 - share) / len(truth)):.1%}"


most_frequent = max(labels, key=lambda label: sum(example.label == label for example in train))
display(
    table(
        ("검증용 리뷰의 정확도 · accuracy on the dev reviews", ""),
        [
            ("항상 최빈 라벨 · always the most frequent label", accuracy([most_frequent] * len(truth))),
            ("무작위 초기화에서 · from random weights", accuracy([each["label"] for each in predictions_from_random])),
            ("사전 학습한 모델에서 · from the shipped model", accuracy([each["label"] for each in predictions])),
        ],
    )
)

# %% [markdown]
# `±`는 표준 오차입니다. 리뷰 800건으로는 1~2포인트의 차이가 우연인지 구별할 수 없습니다.
#
# `±` is the standard error: with 800 reviews, a difference of a point or two may be chance.
#
# ## 3. 오류 분석 · Its mistakes
#
# 왼쪽은 라벨(행)마다 무엇으로 예측했는지 보여 줍니다. 오른쪽은 확률이 높은 예측일수록 실제로 더 잘 맞는지 보여
# 줍니다. 점이 대각선 위에 있으면 확률을 그대로 믿어도 됩니다.
#
# Left: the predictions for the reviews of each label (row). Right: whether more confident predictions are right more
# often. If the points lie on the diagonal, the probabilities can be trusted.

# %%
found = [each["label"] for each in predictions]
sureness = np.array([each["probabilities"][each["label"]] for each in predictions])
is_right = truth == np.array(found)

figure = Figure(figsize=(9, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
matrix = confusion_matrix(list(truth), found, labels)
left.imshow(matrix / np.maximum(1, matrix.sum(axis=1, keepdims=True)), cmap="Blues", vmin=0, vmax=1)
for (row, column), count in np.ndenumerate(matrix):
    is_dark = count > 0.5 * matrix[row].sum()
    left.text(column, row, count, ha="center", va="center", color="white" if is_dark else "black")
left.set(xlabel="prediction", ylabel="label", title="confusion matrix")
names, font = drawable(labels)
left.set_xticks(range(len(labels)), names, fontfamily=font)
left.set_yticks(range(len(labels)), names, fontfamily=font)

borders = np.linspace(1 / len(labels), 1, 6)
for low, high in itertools.pairwise(borders):
    inside = (sureness >= low) & (sureness <= high)
    if inside.any():
        right.scatter(sureness[inside].mean(), is_right[inside].mean(), s=20 + 3 * inside.sum(), color="C0", alpha=0.7)
right.plot([borders[0], 1], [borders[0], 1], "k--", linewidth=0.8)
right.set(xlabel="probability of the answer", ylabel="share that is right", title="sureness (area: reviews)")
right.set(ylim=(0, 1.05))
right.grid(alpha=0.3)
display(Image(png_of(figure)))

# %% [markdown]
# 가장 자신 있게 틀린 것부터 보여 줍니다. 반어적인 표현, 빠진 맥락, 잘못 붙은 라벨을 찾을 수 있습니다.
#
# The most confident mistakes come first. Look for irony, missing context and wrong labels.

# %%
wrong = sorted(np.flatnonzero(~is_right), key=lambda number: -sureness[number])
rows = [(truth[number], found[number], f"{sureness[number]:.0%}", dev[number].text) for number in wrong[:12]]
display(table(("라벨 label", "답 answer", "확률 probability", "리뷰 review"), rows))

# %% [markdown]
# ## 4. 예측을 결정한 단어 · Which words decide
#
# 단어를 하나씩 빼고 다시 예측합니다. 빼면 확률이 내려가는 단어(파랑)는 그 예측을 뒷받침한 단어이고, 올라가는
# 단어(빨강)는 그 반대입니다. 진할수록 로그 오즈가 크게 달라집니다. 앞의 넷은 가장 자신 있게 맞힌 리뷰, 뒤의 넷은 가장
# 자신 있게 틀린 리뷰입니다.
#
# Each word is left out in turn. If the probability of the predicted label falls (blue), the word supported it; if it
# rises (red), the word spoke against it. The darker the colour, the larger the change in log odds. First come the
# most confident right predictions, then the most confident wrong ones.

# %%
import albert_tf

predictor = albert_tf.load(os.path.join(WORK, "pretrained"))


def log_odds(probability):
    """Returns what a probability is to a model: it grows as fast near 0 and 1 as between."""
    return np.log(probability / (1 - probability))


def shade(change):
    """Returns red where the log odds fall, and blue where they rise; 3 is as strong as it gets."""
    return f"rgba({'214,69,65' if change < 0 else '31,119,180'},{0.2 * min(3, abs(change)):.2f})"


def explained(text):
    """Returns a text with its words coloured, its label, and the probability of that."""
    words = text.split()
    answer, *others = predictor.predict(
        [text, *(" ".join(words[:number] + words[number + 1 :]) for number in range(len(words)))]
    )
    label = answer["label"]
    changes = [log_odds(answer["probabilities"][label]) - log_odds(other["probabilities"][label]) for other in others]
    parts = [part for word, change in zip(words, changes) for part in ((word, shade(change), ""), (" ", "", ""))]
    return marked(parts), label, f"{answer['probabilities'][label]:.0%}"


with clock("4 예측을 결정한 단어 · which words decide"):
    surest = sorted(np.flatnonzero(is_right), key=lambda number: -sureness[number])
    chosen = [*surest[: SIZES["explained"]], *wrong[: SIZES["explained"]]]
    rows = [(truth[number], *explained(dev[number].text)) for number in chosen if len(dev[number].text.split()) > 1]
display(table(("라벨 label", "리뷰 review", "답 answer", "확률 probability"), rows))

# %% [markdown]
# ## 5. 내보내기와 예측 · Export and predict
#
# 내보낸 모델은 **문자열을 그대로** 받습니다. 토크나이저가 들어 있으므로 `tensorflow`와 `tensorflow-text`만 있으면
# 어디서나 실행됩니다.
#
# The export takes raw strings: it contains the tokenizer, and needs only tensorflow and tensorflow-text.

# %%
from albert_tf.asking.answers import rows_of
from albert_tf.serving.exporting import export_model
from albert_tf.serving.formats import open_export

with clock("5 내보내기 · export"):
    target = os.path.join(WORK, "export_float32")
    shutil.rmtree(target, ignore_errors=True)
    version = pathlib.Path(export_model(os.path.join(WORK, "pretrained"), target))
    export = open_export(target)
size = sum(path.stat().st_size for path in version.rglob("*") if path.is_file())
display(table(("폴더 folder", "크기 size"), [(str(version), f"{size / 1e6:.1f} MB")]))

# %%
QUESTIONS = [
    "배우들 연기가 미쳤다 두 번 봄",
    "시간이 아깝다. 환불하고 싶다",
    "기대 안 했는데 의외로 괜찮았어요 ㅎㅎ",
    "재미없다는 말은 못 하겠네요",
]  # 여기에 내 문장을 넣으세요 · your own sentences here
answers = rows_of(export.compute("serving_default", {"text": QUESTIONS}))
rows = [(text, f"{answer['label']} ({answer['probability']:.0%})") for text, answer in zip(QUESTIONS, answers)]
display(table(("문장 sentence", "답 answer"), rows))

# %% [markdown]
# 다음 단계: `albert-tf predict`(파일 전체 예측), `albert-tf serve`(HTTP 서버), `albert-tf playground`(웹 페이지)는
# `docs/serving.md`에 있습니다.
#
# Next: `docs/serving.md` shows how to predict whole files, run an HTTP server, and try the model on a web page.

# %%
display(clock.table())
