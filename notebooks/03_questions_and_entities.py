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
# # 질의응답과 개체명 인식 · Questions and entities
#
# 텍스트에서 **답의 위치**(질의응답)와 **사람·장소·기관·날짜의 위치**(개체명)를 찾습니다. 이 프로젝트를 위해 쓴 질문
# 96개와 문장 209개로 포함된 작은 모델을 학습하고 평가합니다. 이만큼의 데이터로 무엇을 배우고 무엇을 배우지 못하는지
# 그대로 보여 줍니다.
#
# The included small model learns to find the answer to a question in a text, and people, places, organisations and
# dates, from 96 questions and 209 sentences that were written for this project. The notebook shows honestly what so
# few examples can and can't teach.
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
# 내 데이터를 쓰려면 `"upload"`(Colab)나 폴더 이름을 적으세요. 드라이브라면 `/content/drive/MyDrive/...`. 질문은
# SQuAD나 KorQuAD 1.0 형식의 `train.json`과 `dev.json`(또는 `KorQuAD_v1.0_*.json`), 개체명은 네이버
# 형식(`naver_ner`)이나 KLUE 형식(`klue_ner`)의 파일입니다(`docs/question_answering.md`, `docs/entities.md`). 다른
# 데이터로 다시 할 때는 `WORK`도 바꾸세요.
#
# For your own data, write `"upload"` (Colab) or the name of a folder, in Google Drive `/content/drive/MyDrive/...`.
# It should contain, for questions, `train.json` and `dev.json` in the format of SQuAD or KorQuAD 1.0 (or
# `KorQuAD_v1.0_*.json`), and for entities, files in Naver's format (`naver_ner`) or KLUE's (`klue_ner`). For other
# data choose another `WORK`, too.

# %%
QUESTIONS_DATA = "samples"  # @param ["samples", "upload"] {allow-input: true}
ENTITIES_DATA = "samples"  # @param ["samples", "upload"] {allow-input: true}
ENTITIES_FORM = "naver_ner"  # @param ["naver_ner", "klue_ner", "conll"]
WORK = "notebook_output/questions_and_entities"  # @param {type:"string"}

# None: 문장 수에 맞춰 고름 · None: chosen by the number of sentences
SIZES = {"question_steps": 300, "entity_steps": None, "shown": 8}
if is_test():  # 테스트용으로 작게 · small, for continuous integration
    SIZES = {"question_steps": 3, "entity_steps": 3, "shown": 2}

# %%
import random

import tensorflow as tf
from IPython.display import display

import albert_tf
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Entities, QuestionAnswering, runner
from albert_tf.finetuning.datasets import find_files
from albert_tf.finetuning.defaults import (
    choose_max_seq_length,
    default_learning_rate,
    default_question_alignment,
    finetuning_settings,
    with_default_dropout,
)
from albert_tf.finetuning.tasks.tagged_text import DATASETS, entities_of, entity_counts, types_of
from albert_tf.tokenization import load_tokenizer
from albert_tf.training import TrainingRun
from notebooks.helpers import Clock, TrainingWatch, find_data, find_strategy, marked, table

MODEL = "models/albert_ko_small"
clock, strategy = Clock(), find_strategy()
tokenizer = load_tokenizer(MODEL)
config = AlbertConfig.from_json_file(f"{MODEL}/albert_config.json")


def make_run(name, task, settings, panels):
    """Returns a run in a folder of WORK that shows itself while it trains."""
    folder = os.path.join(WORK, name)
    tf.keras.utils.set_random_seed(settings.random_seed)
    with strategy.scope():
        model = task.make_model()
    watch = TrainingWatch(folder, settings.num_train_steps, panels, name)
    return TrainingRun(folder, task, model, settings, tokenizer, on_metrics=watch)


# %% [markdown]
# # 1부. 질의응답 · Part 1. Questions
#
# 질문마다 답은 **글 속의 한 구간(span)**입니다. 색칠한 곳이 답입니다.
#
# The answer to each question is a span of its text, which is coloured here.

# %%
with clock("1 질문 읽기 · reading questions"):
    folder = find_data(QUESTIONS_DATA, "samples/questions", os.path.join(WORK, "uploaded_questions"))
    train_path = find_files(folder, ("train.json", "KorQuAD_v1.0_train.json"))
    dev_path = find_files(folder, ("dev.json", "KorQuAD_v1.0_dev.json"))
    # 작은 모델은 글의 토큰마다 질문의 비슷한 단어도 읽습니다. Each piece comes with similar words.
    aligned = config.replace(question_alignment=default_question_alignment(config))
    question_task = QuestionAnswering(aligned, metrics="korquad")
    length = config.max_position_embeddings
    train_questions = runner.load_file(question_task, train_path, tokenizer, length)
    dev_questions = runner.load_file(question_task, dev_path, tokenizer, length)


def with_answer(context, begin, end, color="#ffd54d"):
    """Returns a text with a span of it coloured."""
    return marked([(context[:begin], "", ""), (context[begin:end], color, ""), (context[end:], "", "")])


def with_right_answer(question):
    """Returns the text of a question with its answer coloured."""
    answer = question.answers[0]
    return with_answer(question.context, answer.begin, answer.begin + len(answer.text))


rows = [(question.question, with_right_answer(question)) for question in train_questions.examples[:4]]
display(table(("질문 question", "글 text"), rows))

# %% [markdown]
# 질문이 적으므로 외울 때까지 학습합니다. 학습률은 5e-4이고 드롭아웃은 쓰지 않습니다(`docs/question_answering.md`의
# 실험과 같습니다).
#
# With so few questions, the model is trained until it has memorised them: a rate of 5e-4 and no dropout, as in the
# experiment of `docs/question_answering.md`.

# %%
with clock("1 질문 학습 · training on questions"):
    settings = finetuning_settings(
        config,
        train_questions.num_rows,
        init_checkpoint=MODEL,
        num_train_steps=SIZES["question_steps"],
        train_batch_size=16,
        learning_rate=5e-4,
        iterations_per_loop=10,
    )
    run = make_run("questions", question_task, settings, ("loss", "start_accuracy", "end_accuracy"))
    runner.train(run, train_questions, dev_questions)
    runner.evaluate(run, dev_questions)

# %% [markdown]
# **학습한 질문과 처음 보는 질문.** `exact_match`는 답과 정확히 일치한 비율, `f1`은 겹치는 글자로 계산한
# 값입니다(KorQuAD의 기준). '무작위 단어'는 글에서 단어 하나를 무작위로 고른 베이스라인입니다.
#
# **Questions from training, and new ones**: `exact_match` is the share of answers that match exactly, `f1` is
# computed from shared characters (KorQuAD's rules). A random word is the baseline.


# %%
def answers_to(file):
    """Returns the predictions for all questions of a file."""
    return runner.compute_predictions(question_task, file, 64, run.compute_outputs, run.batch_lengths)


def scores_of(file, predictions):
    """Returns the number of questions, and exact match and F1 in percent."""
    scores = question_task.score(file.examples, predictions)
    return [len(file.examples), *(f"{scores[name]:.1f}" for name in ("exact_match", "f1"))]


def random_words(file):
    """Returns a word of the text for each question."""
    draw = random.Random(0)
    return [{"id": each.id, "text": draw.choice(each.context.split())} for each in file.examples]


with clock("1 답 · answers"):
    answers = {"train": answers_to(train_questions), "dev": answers_to(dev_questions)}
    at_random = random_words(dev_questions)
rows = [
    ("학습한 질문 · learnt", *scores_of(train_questions, answers["train"])),
    ("처음 보는 질문 · new", *scores_of(dev_questions, answers["dev"])),
    ("처음 보는 질문, 무작위 단어 · new, a word at random", *scores_of(dev_questions, at_random)),
]
display(table(("", "질문 questions", "exact match", "F1"), rows))

# %% [markdown]
# 외운 질문에는 잘 답하고, 처음 보는 질문은 몇 개를 맞히거나 답 근처를 고릅니다. 답이 질문의 단어와 비슷한 단어 옆에
# 있다는 것은 이만큼의 예제로도 조금 배우지만, 질문을 이해하는 법은 배우지 못합니다. KorQuAD의 질문 4,000개로 학습하면
# F1이 약 44가 됩니다(`docs/question_answering.md`). 학습한 질문의 점수도 100이 아닌 이유는 답이 토큰 중간에서 끝나기
# 때문입니다(예: `서울에서`가 한 토큰이면 `서울`만 고를 수 없습니다).
#
# The model answers what it has memorised; for new questions it finds a few answers, or places near them. So few
# examples can teach a little that answers are near words that are similar to the question's, but not how to read a
# question: with 4,000 questions of KorQuAD this model reaches an F1 of about 44. If an answer ends inside a piece,
# such as 서울 in 서울에서, even a memorised answer can't be found exactly.

# %%
rows = []
for question, answer in list(zip(dev_questions.examples, answers["dev"]))[:: 24 // SIZES["shown"] or 1]:
    is_right = answer["text"] == question.answers[0].text
    color = "#9be29b" if is_right else "#ff9d8f"
    text = with_answer(question.context, answer["begin"], answer["end"], color)
    rows.append((question.question, question.answers[0].text, answer["text"], text))
display(table(("질문 question", "답 answer", "모델의 답 found", "글 text"), rows))

# %%
# 내 질문 · your own question
predictor = albert_tf.load(os.path.join(WORK, "questions"))
TEXT = train_questions.examples[0].context
for question in ("국물은 무엇이 되나?", "메주는 얼마 동안 말리나?"):
    (answer,) = predictor.predict([(question, TEXT)])
    candidates = ", ".join(f"{each['text']}" for each in answer["nbest"][:3])
    rows = [("질문 question", question), ("답 answer", answer["text"]), ("후보 candidates", candidates)]
    display(table(("", ""), rows))

# %% [markdown]
# # 2부. 개체명 · Part 2. Entities
#
# 색은 개체명의 종류입니다. 학습 파일의 태그는 단어(어절)마다 붙어 있으므로 조사까지 색칠됩니다.
#
# Colours are types of entities. The files tag whole words, so particles are coloured too.

# %%
COLORS = ("#cfe8ff", "#ffe3b8", "#d7f2cf", "#f3d1ee", "#ffd2cc", "#e0dcf7", "#f7f0b5")

with clock("2 개체명 읽기 · reading entities"):
    files = DATASETS[ENTITIES_FORM]
    folder = find_data(ENTITIES_DATA, "samples/entities", os.path.join(WORK, "uploaded_entities"))
    train_path, dev_path = find_files(folder, files.train), find_files(folder, files.dev)
    types = tuple(types_of(train_path, files.form))
    entity_task = Entities(config, types, files.form, ("entity_f1", "entity_precision", "entity_recall"))
    length = choose_max_seq_length(entity_task, runner.read_file(entity_task, train_path), tokenizer)
    train_sentences = runner.load_file(entity_task, train_path, tokenizer, length)
    dev_sentences = runner.load_file(entity_task, dev_path, tokenizer, length)
    entity_task.config = with_default_dropout(config, train_sentences.num_rows)


def with_entities(text, entities):
    """Returns a text with its entities coloured by type; each is a dictionary of type, begin and end."""
    parts, end = [], 0
    for entity in entities:
        color = COLORS[types.index(entity["type"]) % len(COLORS)]
        parts += [(text[end : entity["begin"]], "", ""), (text[entity["begin"] : entity["end"]], color, entity["type"])]
        end = entity["end"]
    return marked([*parts, (text[end:], "", "")])


def true_entities(example):
    """Returns the entities of a tagged text, as predictions have them."""
    return [
        {"type": each.type, "begin": example.units[each.begin][0], "end": example.units[each.end - 1][1]}
        for each in entities_of(list(example.tags))
    ]


rows = [[with_entities(each.text, true_entities(each))] for each in train_sentences.examples[: SIZES["shown"]]]
display(table(("문장 sentence",), rows))

# %% [markdown]
# 사전 학습한 모델과 무작위 초기화에서 한 번씩 학습합니다. 학습률 등은 `run_ner.py`의 기본값과 같습니다.
#
# The model is trained once from the included model and once from random weights, with the defaults of `run_ner.py`.


# %%
def train_entities(name, init_checkpoint):
    """Returns what a model finds in the dev sentences, and its F1 in percent."""
    rate = default_learning_rate(config, init_checkpoint is not None, entity_task.highest_learning_rate)
    given = {"num_train_steps": SIZES["entity_steps"]} if SIZES["entity_steps"] else {}
    settings = finetuning_settings(
        config,
        train_sentences.num_rows,
        init_checkpoint=init_checkpoint,
        learning_rate=rate,
        iterations_per_loop=10,
        **given,
    )
    run = make_run(name, entity_task, settings, ("loss", "tag_accuracy"))
    runner.train(run, train_sentences, dev_sentences)
    results = runner.evaluate(run, dev_sentences)
    found = runner.predict(run, dev_sentences, batch_size=64)
    return found, results


# %%
with clock("2 개체명 학습, 사전 학습한 모델 · training on entities, shipped model"):
    found, results = train_entities("entities", MODEL)

# %%
with clock("2 개체명 학습, 무작위 가중치 · training on entities, random weights"):
    _, results_from_random = train_entities("entities_from_random_weights", None)

# %%
rows = [
    (title, *(f"{each[f'entity_{name}']:.1%}" for name in ("f1", "precision", "recall")))
    for title, each in (
        ("사전 학습한 모델 · shipped model", results),
        ("무작위 가중치 · random weights", results_from_random),
    )
]
display(table(("처음 보는 문장 · new sentences", "F1", "precision", "recall"), rows))

# %% [markdown]
# 종류마다 · By type:

# %%
truth = [list(example.tags) for example in dev_sentences.examples]
counts = entity_counts(truth, [each["tags"] for each in found])
rows = []
for kind, (num_right, num_found, num_true) in counts.items():
    shares = 2 * num_right / (num_found + num_true), num_right / max(1, num_found), num_right / max(1, num_true)
    rows.append((kind, num_true, *(f"{share:.1%}" for share in shares)))
display(table(("", "개수 number", "F1", "precision", "recall"), rows))

# %% [markdown]
# 틀린 문장들입니다. 위가 정답, 아래가 모델이 찾은 것입니다.
#
# Sentences with mistakes: the upper row is the truth, the lower row what the model found.

# %%
rows = []
for example, each in zip(dev_sentences.examples, found):
    if list(example.tags) != each["tags"] and len(rows) < 2 * SIZES["shown"]:
        rows.append(("정답 truth", with_entities(example.text, true_entities(example))))
        rows.append(("찾음 found", with_entities(example.text, each["entities"])))
display(table(("", "문장 sentence"), rows))

# %%
# 내 문장 · your own sentences
predictor = albert_tf.load(os.path.join(WORK, "entities"))
SENTENCES = ["김하늘 씨는 내년 봄에 춘천에서 결혼한다.", "누리전자가 지난주 광주 공장을 닫았다."]
rows = [[with_entities(text, each["entities"])] for text, each in zip(SENTENCES, predictor.predict(SENTENCES))]
display(table(("문장 sentence",), rows))

# %% [markdown]
# 형태(`-시`, `-은행`, `씨` 앞)가 뚜렷한 개체명은 꽤 찾습니다. 문장 159개로 학습했으므로 신문 기사에서는 성능이 훨씬
# 낮습니다. 네이버 데이터 6,500문장으로 학습한 결과는 `docs/entities.md`에 있습니다.
#
# The model finds names by their form and their neighbours. Trained on 159 sentences of one kind, it does much worse
# on newspapers; `docs/entities.md` has the results of the same model with 6,500 sentences of Naver NER.

# %%
display(clock.table())
