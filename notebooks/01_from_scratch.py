# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 한국어 ALBERT를 처음부터 · A Korean ALBERT from scratch
#
# 텍스트만 있으면 됩니다. 어휘 사전과 학습 데이터를 만들고 작은 ALBERT를 사전 학습합니다. 학습이 진행되면서 `[MASK]`
# 예측이 어떻게 달라지는지 지켜봅니다. CPU만 있어도 됩니다.
#
# All you need is text. We build a vocabulary and training data, pre-train a small ALBERT, and watch how its guesses
# for `[MASK]` change from before the first step until after the last. A CPU is enough.
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
# `DATA`: `"samples"`는 이 프로젝트를 위해 쓴 글 0.8 MB, `"upload"`는 내 파일 업로드(Colab), 그 밖에는 파일이나 폴더
# 이름입니다. 드라이브라면 `/content/drive/MyDrive/...`. 한 줄에 한 문장, 문서 사이에 빈 줄을 둔 `.txt`나 `.jsonl`,
# `.parquet`이면 되고 `.gz`도 됩니다. 다른 데이터로 다시 할 때는 결과 폴더인 `WORK`도 바꾸세요. 글이 많으면
# `vocab_size`(8,000 이상)와 `num_train_steps`를 늘리세요.
#
# `"samples"`: 0.8 MB of text written for this project; `"upload"`: choose files of your own (Colab); otherwise a file
# or folder, in Google Drive `/content/drive/MyDrive/...`. Files are `.txt` with one sentence a line and a blank line
# between documents, `.jsonl` or `.parquet`, `.gz` too. For other data choose another `WORK`, the folder of results;
# if you have much text, raise `vocab_size` (8,000 and more) and `num_train_steps`.
#
# `OBJECTIVE`: `"halves"`는 반으로 자른 문장의 짝을 찾는 과제로, 리뷰처럼 짧은 글에 맞습니다. `"albert"`는 논문의
# ALBERT 그대로 두 세그먼트의 순서를 맞히는 과제로, 기사나 백과사전처럼 긴 글에 맞습니다.
#
# `"halves"`: besides guessing masks, the model finds the other half of a sentence that was cut in two; this suits
# short texts such as reviews. `"albert"`: it predicts whether two segments were swapped, as in ALBERT's paper; this
# suits longer texts.

# %%
DATA = "samples"  # @param ["samples", "upload"] {allow-input: true}
WORK = "notebook_output/from_scratch"  # @param {type:"string"}
OBJECTIVE = "halves"  # @param ["halves", "albert"]

SIZES = {"vocab_size": 4000, "num_train_steps": 1000, "files": None}
if is_test():  # 테스트용으로 작게 · small, for continuous integration
    SIZES = {"vocab_size": 3000, "num_train_steps": 6, "files": 2}

# %%
import itertools
import random

import tensorflow as tf
from IPython.display import Markdown, display

from albert_tf.config import AlbertConfig
from albert_tf.reading.documents import CorpusReader, find_corpus_files
from albert_tf.tokenization import KoreanWordPieceTokenizer, load_tokenizer
from notebooks.helpers import Clock, TrainingWatch, find_data, find_strategy, marked, pieces, table, with_progress

clock, strategy = Clock(), find_strategy()

# %% [markdown]
# ## 1. 텍스트 · The text

# %%
with clock("1 텍스트 · text"):
    sample = ["samples/corpus", "samples/unlabelled_reviews"]
    chosen = sample if DATA == "samples" else [find_data(DATA, "samples/corpus")]
    paths = find_corpus_files(chosen, "DATA")[: SIZES["files"]]
    reader = CorpusReader(paths)
    num_documents = num_sentences = 0
    examples, draw = [], random.Random(0)  # 문서 다섯 개를 무작위로 뽑음 · five documents, drawn uniformly
    for document in with_progress("read", reader.documents(), lambda: reader.share_read):
        place = draw.randrange(num_documents + 1)
        if len(examples) < 5:
            examples.append(document)
        elif place < 5:
            examples[place] = document
        num_documents += 1
        num_sentences += len(document)

titles = ("파일 files", "문서 documents", "문장 sentences", "MB")
display(table(titles, [(len(paths), f"{num_documents:,}", f"{num_sentences:,}", f"{reader.num_bytes / 1e6:.2f}")]))
rows = [["\n".join(document[:2])] for document in examples]
display(table(("문서의 첫 두 문장 · the first two sentences of a document",), rows))

# %% [markdown]
# ## 2. 어휘 사전 · The vocabulary
#
# 텍스트에 자주 나오는 글자열이 **토큰(piece)** 이 됩니다. 한글은 자모로 분해하지 않고, ㅋㅋ와 ㅠㅠ도 그대로 둡니다.
#
# Character sequences that occur often in the text become pieces. Hangul is never decomposed into jamo, and ㅋㅋ and
# ㅠㅠ survive.

# %%
from albert_tf.tokenization.vocabulary_report import format_table, measure
from albert_tf.tokenization.vocabulary_training import count_words, train_vocabulary


def sentences_of(title):
    """Yields every sentence of the text, with a bar."""
    reader = CorpusReader(paths)
    return with_progress(title, reader.sentences(), lambda: reader.share_read)


with clock("2 어휘 사전 · vocabulary"):
    words = count_words(sentences_of("words counted"))
    vocabulary = train_vocabulary(words, SIZES["vocab_size"], limit_alphabet=2000)
    tokenizer = KoreanWordPieceTokenizer(vocabulary)
    tokenizer.save(os.path.join(WORK, "vocabulary"))

# %% [markdown]
# **어휘 사전 보고서.** 미등록 단어가 적고, 단어당 토큰이 적고, 명사와 조사 사이가 토큰의 경계와 잘 맞을수록 좋습니다.
# 그 아래에서는 리뷰 58 MB로 만든 `models/albert_ko_small`의 어휘 사전과 나란히 문장을 나누어 봅니다.
#
# **A report on the vocabulary.** A good one has few unknown words, few pieces a word, and piece borders between nouns
# and their particles (josa). Below it, sentences are split by this one and by that of `models/albert_ko_small`, which
# was made from 58 MB of reviews.

# %%
with clock("2 어휘 사전 보고서 · report on the vocabulary"):
    report = measure(tokenizer, sentences_of("this one"))
display(Markdown(format_table("this one", report)))

# %%
tokenizers = {"this one": tokenizer, "albert_ko_small": load_tokenizer("models/albert_ko_small")}
lines = [document[0] for document in examples]
rows = [[pieces(line, each.encode(line).offsets) for each in tokenizers.values()] for line in lines]
display(table(list(tokenizers), rows))

# %% [markdown]
# ## 3. 학습 데이터 · Training data

# %%
from albert_tf.objectives import OBJECTIVES
from albert_tf.pretraining_data.making.builder import build
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.masking import MaskingOptions, default_max_predictions

LENGTH = 64  # 토큰 수 · pieces of an example
train_path, held_out_path = (os.path.join(WORK, "data", f"{name}.tfrecord") for name in ("train", "held_out"))

with clock("3 학습 데이터 · training data"):
    masking = MaskingOptions(default_max_predictions(LENGTH, 0.15, False), ngram=1)
    packing = OBJECTIVES[OBJECTIVE].packings[0]
    options = BuilderOptions(LENGTH, masking, packing=packing, objective=OBJECTIVE, held_out_fraction=0.05)
    manifest = build(CorpusReader(paths), tokenizer, options, [train_path], [held_out_path])

splits = manifest["splits"].items()
rows = [(name, f"{split['examples']:,}", f"{split['mean_tokens_per_example']:.1f}") for name, split in splits]
display(table(("", "예제 examples", "토큰 수 pieces on average"), rows))

# %% [markdown]
# 모델이 읽는 예제입니다. **노랑**은 `[MASK]`로 가린 토큰, **빨강**은 다른 토큰으로 바꾼 것, **초록**은 그대로
# 두었지만 예측해야 하는 토큰입니다. 가리는 위치는 예제를 읽을 때마다 새로 뽑습니다.
#
# What the model reads. Yellow pieces became `[MASK]`, red ones became another piece, green ones stayed; the model
# must guess all of these. They are drawn again each time an example is read.

# %%
from albert_tf.pretraining_data.show import ShardReader


def shown_example(shard, batch, row):
    """Returns an example of a shard with what must be guessed in colours."""
    parts = []
    for place in batch.is_used[row].nonzero()[0]:
        piece, seen = batch.original_ids[row, place], batch.input_ids[row, place]
        color, note = "", ""
        if batch.is_chosen[row, place]:
            color = "#ffd54d" if seen == shard.mask_id else "#9be29b" if seen == piece else "#ff9d8f"
            note = shard.name_of(seen) if color == "#ff9d8f" else ""
        name = shard.name_of(piece)
        space = " " if batch.word_starts[row, place] else ""
        parts += [(space, "", ""), (name.removeprefix("##"), color, note)]
    return marked(parts)


shard = ShardReader(train_path)
batch = next(shard.read())
display(table(("예제 example",), [[shown_example(shard, batch, row)] for row in range(5)]))

# %% [markdown]
# ## 4. 학습 전 · Before training
#
# 가중치가 아직 무작위이므로 `[MASK]`의 예측도 무작위입니다. 아래 문장은 바꿔도 됩니다.
#
# The weights are random, and so are the guesses. You can put your own sentences here.

# %%
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.runs.phases import make_phase, objective_of
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures import make_signatures

QUESTIONS = [
    "배우들 연기가 정말 [MASK]",
    "돈이 [MASK]",
    "국물이 시원하고 면발이 [MASK]",
    "배송이 너무 [MASK]",
    "이 [MASK] 보고 울었어요 ㅠㅠ",
    "오늘 점심 뭐 [MASK] ?",
]

config = AlbertConfig.from_json_file("configs/albert_demo.json").replace(vocab_size=len(tokenizer))
shards = find_shards([train_path], config)
objective = objective_of(config, shards)
tf.keras.utils.set_random_seed(12345)
with strategy.scope():
    model = objective.make_model()


def make_guesser(model, tokenizer):
    """Returns a function that returns a model's best guesses for the masks of QUESTIONS, with their probabilities."""
    trained = TrainedModel(model, tokenizer, model.config.max_position_embeddings, None, "", {})
    fill_mask = make_signatures(trained).trace()["fill_mask"]

    def guess(count=4):
        outputs = fill_mask(tf.constant(QUESTIONS))
        found = zip(outputs["guesses"].numpy()[:, 0], outputs["probabilities"].numpy()[:, 0])
        return [
            "  ".join(f"{piece.decode()} {share:.0%}" for piece, share in itertools.islice(zip(*each), count))
            for each in found
        ]

    return guess


with clock("4 학습 전 · before training"):
    guess = make_guesser(model, tokenizer)
    guesses = {0: guess()}
display(table(("", "무작위 가중치의 예측 · guesses of random weights"), zip(QUESTIONS, guesses[0])))

# %% [markdown]
# ## 5. 사전 학습 · Pre-training
#
# 3개 층이 가중치를 공유하는 작은 ALBERT입니다(`configs/albert_demo.json`). 단어 임베딩은 한 문장에 함께 나오는 토큰의
# 빈도로 초기화합니다. 점선은 검증 데이터의 값입니다. 도중에 중단해도(■) 저장되고, 다시 실행하면 이어서 학습합니다.
#
# A small ALBERT whose three layers share one set of weights (`configs/albert_demo.json`). Its word embeddings are
# initialised from counts of pieces that occur in the same sentence. Dashed lines are measured on held-out text. A run
# that is stopped saves first; run the cell again to resume it.

# %%
import functools

from albert_tf.runs.cooccurrence import begin_with_counts
from albert_tf.runs.phases import data_settings
from albert_tf.training import RunSettings, TrainingRun

steps = SIZES["num_train_steps"]
settings = RunSettings(
    num_train_steps=steps,
    train_batch_size=32,
    learning_rate=2e-3,
    num_warmup_steps=steps // 10,
    optimizer="muon",
    bias_correction=True,
    evaluates_first=True,
    eval_every_steps=max(1, steps // 5),
    iterations_per_loop=10,
)
run_folder = os.path.join(WORK, "run")

with clock("5 사전 학습 · pre-training"):
    watch = TrainingWatch(run_folder, steps, ("loss", *objective.metric_names), "pre-training")

    def on_metrics(step, split, values):
        """Shows what was measured, and asks the model on the way."""
        watch(step, split, values)
        if split == "held_out":
            guesses[step] = guess()

    run = TrainingRun(run_folder, objective, model, settings, tokenizer, on_metrics=on_metrics)
    phase = make_phase(objective, shards, settings)
    begin = functools.partial(begin_with_counts, model, shards)
    run.train(phase, data_settings([shards], [steps]), initialize=begin)
    results = run.evaluate(phase.make_eval_dataset())

# %% [markdown]
# `masked_lm_loss`가 **문맥 없이** 토큰의 빈도만 알 때의 손실보다 낮으면 모델이 문맥을 활용한다는 뜻입니다.
#
# A `masked_lm_loss` below the loss of guessing by frequency alone means that the model uses context.

# %%
entropy = manifest["splits"]["held_out"]["unigram_entropy"]
rows = [(name, f"{value:.4g}") for name, value in results.items()]
rows.append(("빈도만 알 때의 masked_lm_loss · by frequency alone", f"{entropy:.4g}"))
display(table(("검증 데이터 · held-out text", ""), rows))

# %% [markdown]
# ## 6. 학습 후 · After training
#
# 첫 번째 표는 학습하는 동안 확률이 가장 높았던 토큰, 두 번째 표는 학습을 마친 모델의 예측과 리뷰 58 MB로 학습한
# `models/albert_ko_small`의 예측입니다.
#
# The first table shows the best guess during training; the second the final guesses and those of
# `models/albert_ko_small`, which has read 58 MB of reviews. 0.8 MB of text teach only a little: frequent endings, and
# what a sentence is about.

# %%
guesses[run.step] = guess()
on_the_way = {step: [each.split("  ")[0] for each in found] for step, found in sorted(guesses.items())}
display(table(("", *(f"{step:,}" for step in on_the_way)), zip(QUESTIONS, *on_the_way.values())))

# %%
from albert_tf.serving.loading import load_trained

with clock("6 학습 후 · after training"):
    shipped = load_trained("models/albert_ko_small", "this notebook")
    of_shipped = make_guesser(shipped.model, shipped.tokenizer)()
titles = ("", "여기서 학습한 모델 · this model", "models/albert_ko_small")
display(table(titles, zip(QUESTIONS, guesses[run.step], of_shipped)))

# %% [markdown]
# 다음 단계: `WORK` 아래의 `run` 폴더가 모델입니다. `02_fine_tuning`의 `MODEL`에 이 폴더를 적으면 분류기를 학습할 수
# 있습니다. 텍스트가 많을수록, 오래 학습할수록 좋아집니다. 더 큰 모델은 `docs/pretraining.md`와 `configs/recipes/`에
# 있습니다.
#
# Next: the folder `run` in `WORK` is the model; use it as `MODEL` in `02_fine_tuning`. More text and more steps help;
# `docs/pretraining.md` and `configs/recipes/` have larger models.

# %%
display(clock.table())
