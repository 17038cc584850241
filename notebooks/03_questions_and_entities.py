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
# # 질문에 답하기, 이름 찾기 · Questions and entities
#
# 글에서 **답이 어디에 있는지**(질의응답), **사람·곳·기관·날짜 이름이 어디에 있는지**(개체명)를 찾게 합니다. 포함된
# 작은 모델에 이 프로젝트를 위해 쓴 질문 96개와 문장 209개를 가르칩니다. 이만큼으로 무엇을 배우고 무엇을 못 배우는지를
# 그대로 보여 줍니다.
#
# The included small model learns to find where in a text an answer stands, and where the names of people,
# places, organisations and dates are; from 96 questions and 209 sentences that were written for this project. What so
# few can teach, and what they can't, is shown as it is.
#
# 마지막 칸에 부분마다 걸린 시간이 나옵니다. The last cell says how long each part took.

# %%
# 준비: 이 칸을 먼저 실행하세요. Set-up: run this cell first.
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
# ## 무엇으로, 얼마나 · What to read, and how much
#
# 내 자료를 쓰려면 `"upload"`(Colab)나 폴더 이름을 적으세요. 드라이브라면 `/content/drive/MyDrive/...`. 질문은 SQuAD나
# KorQuAD 1.0 꼴의 `train.json`과 `dev.json`(또는 `KorQuAD_v1.0_*.json`), 이름은 네이버 꼴(`naver_ner`)이나 KLUE
# 꼴(`klue_ner`)의 파일입니다(`docs/question_answering.md`, `docs/entities.md`). 다른 자료로 다시 할 때는 `WORK`도
# 바꾸세요.
#
# For data of your own write `"upload"` (Colab) or the name of a folder, in Google Drive `/content/drive/MyDrive/...`:
# for questions with `train.json` and `dev.json` in the form of SQuAD or KorQuAD 1.0 (or `KorQuAD_v1.0_*.json`), for
# entities with the files of Naver's (`naver_ner`) or KLUE's form (`klue_ner`). For other data choose another `WORK`,
# too.

# %%
QUESTIONS_DATA = "samples"  # @param ["samples", "upload"] {allow-input: true}
ENTITIES_DATA = "samples"  # @param ["samples", "upload"] {allow-input: true}
ENTITIES_FORM = "naver_ner"  # @param ["naver_ner", "klue_ner", "conll"]
WORK = "notebook_output/questions_and_entities"  # @param {type:"string"}

# None: 문장 수에 맞춰 고름 · None: chosen by the number of sentences
SIZES = {"question_steps": 300, "entity_steps": None, "shown": 8}
if is_test():  # 검사용으로 작게 · small, for continuous integration
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
from albert_tf.finetuning.entities.metrics import entity_counts
from albert_tf.finetuning.entities.tagged_text import DATASETS, types_of
from albert_tf.finetuning.entities.tags import entities_of
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
# # 1부. 질문 · Part 1. Questions
#
# 질문마다 답은 **글 속의 한 구간(span)**입니다. 칠한 곳이 답입니다.
#
# The answer to each question is a span of its text, which is coloured here.

# %%
with clock("1 질문 읽기 · reading questions"):
    folder = find_data(QUESTIONS_DATA, "samples/questions", os.path.join(WORK, "uploaded_questions"))
    train_path = find_files(folder, ("train.json", "KorQuAD_v1.0_train.json"))
    dev_path = find_files(folder, ("dev.json", "KorQuAD_v1.0_dev.json"))
    # 작은 모델에게는 글의 토큰마다 질문의 어느 단어와 닮았는지 알려 줍니다. Each piece is told which words it is like.
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
# 질문이 몇 개뿐이라 외울 때까지 가르칩니다: 학습률 5e-4, 드롭아웃 없음(`docs/question_answering.md`의 실험과 같음).
#
# So few questions are trained until they are memorised: a rate of 5e-4 and no dropout, as in the experiment of
# `docs/question_answering.md`.

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
# **배운 질문과 처음 보는 질문.** `exact_match`는 답과 똑같은 비율, `f1`은 겹치는 글자의 비율입니다(KorQuAD의 기준).
# '아무 단어'는 글에서 단어 하나를 아무렇게나 고른 것입니다.
#
# **Questions it has learnt, and new ones**: `exact_match` is the share of answers that are the same to the character,
# `f1` goes by the characters that they share (KorQuAD's rules). A word at random is what has to be beaten.


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
    ("배운 질문 · learnt", *scores_of(train_questions, answers["train"])),
    ("처음 보는 질문 · new", *scores_of(dev_questions, answers["dev"])),
    ("처음 보는 질문, 아무 단어 · new, a word at random", *scores_of(dev_questions, at_random)),
]
display(table(("", "질문 questions", "exact match", "F1"), rows))

# %% [markdown]
# 외운 것은 잘 답하고, 처음 보는 것은 몇 개를 맞히거나 그 곁을 짚습니다. 질문의 단어와 닮은 곳 옆에 답이 있다는 것은
# 이만큼의 예로도 조금 배우지만, 질문을 읽는 법은 그렇지 않습니다. KorQuAD의 질문 4,000개를 배우면 F1이 44쯤 됩니다
# (`docs/question_answering.md`). 배운 질문도 100이 아닌 이유는 답이 토큰 안에서 끝나기 때문입니다(예: `서울에서`가
# 한 토큰이면 `서울`만 떼어 낼 수 없음).
#
# It answers what it has memorised; of what is new it finds a few, or the place near them. That answers stand near
# words that are like the question's can be learnt a little from so few, how to read a question can't: 4,000 questions
# of KorQuAD bring this model to an F1 of about 44. And where an answer ends inside a piece, as 서울 in 서울에서, even
# what was learnt can't be cut out to the character.

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
# # 2부. 이름 · Part 2. Entities
#
# 색은 이름의 종류입니다. 학습 파일의 태그는 단어(어절)에 붙어서, 조사까지 칠해집니다.
#
# Colours are types of names. The files tag words, so that particles are coloured too.

# %%
COLORS = ("#cfe8ff", "#ffe3b8", "#d7f2cf", "#f3d1ee", "#ffd2cc", "#e0dcf7", "#f7f0b5")

with clock("2 이름 읽기 · reading entities"):
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
# 미리 읽은 모델과 무작위 가중치에서 한 번씩 가르칩니다. 학습률 등은 `run_ner.py`가 고르는 것과 같습니다.
#
# Trained once from the included model and once from random weights, with what `run_ner.py` chooses.


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
with clock("2 이름 학습, 미리 읽은 모델 · training on entities, shipped model"):
    found, results = train_entities("entities", MODEL)

# %%
with clock("2 이름 학습, 무작위 가중치 · training on entities, random weights"):
    _, results_from_random = train_entities("entities_from_random_weights", None)

# %%
rows = [
    (title, *(f"{each[f'entity_{name}']:.1%}" for name in ("f1", "precision", "recall")))
    for title, each in (
        ("미리 읽은 모델 · shipped model", results),
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
# Sentences with mistakes: above the truth, below what was found.

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
# 이름은 생김새(`-시`, `-은행`, `씨` 앞)로 꽤 찾습니다. 문장 159개로 배운 것이니 신문 기사에서는 훨씬 못합니다.
# `docs/entities.md`에 네이버 자료 6,500문장으로 배운 결과가 있습니다.
#
# Names are found by how they look and what stands beside them. After 159 sentences of one kind newspapers are much
# harder: `docs/entities.md` tells what 6,500 sentences of Naver's teach the same model.

# %%
display(clock.table())
