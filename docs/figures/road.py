"""The road from text to a served model: what each command makes, in English and in Korean."""

import vector

# For each step: commands, and in each language its name and what comes out.
STEPS = (
    (("build_vocab.py",), {"en": ("1. Vocabulary", "vocab.txt"), "ko": ("1. 어휘 사전", "vocab.txt")}),
    (
        ("create_pretraining_data.py",),
        {"en": ("2. Training data", "shards, manifest"), "ko": ("2. 학습 데이터", "샤드, 매니페스트")},
    ),
    (
        ("run_pretraining.py",),
        {"en": ("3. Pre-training", "checkpoints, plots"), "ko": ("3. 사전 학습", "체크포인트, 그래프")},
    ),
    (
        ("run_classifier.py", "run_squad.py", "run_ner.py", "run_race.py"),
        {"en": ("4. Fine-tuning", "scores, predictions"), "ko": ("4. 미세 조정", "점수, 예측")},
    ),
    (
        ("export_model.py", "albert-tf predict", "albert-tf serve", "albert-tf playground"),
        {"en": ("5. Serving", "answers to raw text"), "ko": ("5. 추론과 서빙", "문자열 입력, 응답 출력")},
    ),
)
WORDS = {
    "en": {
        "title": "The road from Korean text to a served model",
        "text": "your Korean text",
        "labels": "your labels",
        "plan": "albert-tf plan-tpu: what fits which TPU, before renting",
        "convert": "convert_checkpoint.py: Google, Hugging Face, KerasHub, in and out",
    },
    "ko": {
        "title": "한국어 텍스트에서 서비스하는 모델까지",
        "text": "한국어 텍스트",
        "labels": "라벨",
        "plan": "albert-tf plan-tpu: 빌리기 전에, 어느 TPU에 무엇이 들어가는지",
        "convert": "convert_checkpoint.py: Google, Hugging Face, KerasHub와 주고받기",
    },
}
WIDTH, GAP, TOP, HEIGHT = 178, 16, 64, 138


def draw(language: str) -> str:
    """Returns the picture as SVG; the language is "en" or "ko"."""
    words = WORDS[language]
    total = len(STEPS) * (WIDTH + GAP) + GAP
    drawing = vector.Drawing(total, 278, words["title"])
    lefts = [GAP + index * (WIDTH + GAP) for index in range(len(STEPS))]
    middles = [left + WIDTH / 2 for left in lefts]
    for left, middle, (commands, named) in zip(lefts, middles, STEPS):
        name, product = named[language]
        drawing.box(left, TOP, WIDTH, HEIGHT)
        drawing.text(middle, TOP + 24, name, 15, bold=True, fill=vector.ACCENT)
        for row, command in enumerate(commands):
            drawing.text(middle, TOP + 48 + 17 * row, command, 10.2, mono=True)
        drawing.text(middle, TOP + HEIGHT - 13, product, 12, fill=vector.SECOND)
    for left in lefts[1:]:
        drawing.arrow((left - GAP + 1, TOP + HEIGHT / 2), (left - 2, TOP + HEIGHT / 2))
    for label, targets in ((words["text"], middles[:2]), (words["labels"], middles[3:4])):
        x = sum(targets) / len(targets)
        drawing.text(x, 22, label, 13.5, bold=True)
        for target in targets:
            drawing.arrow((x, 30), (target, TOP - 3))
    bottom = TOP + HEIGHT
    for key, first, last, depth in (("plan", 2, 2, 22), ("convert", 2, 3, 50)):
        x = (middles[first] + middles[last]) / 2
        drawing.box(x - 236, bottom + depth - 4, 472, 24, fill="#ffffff")
        drawing.text(x, bottom + depth + 12, words[key], 12)
    drawing.arrow((middles[2], bottom + 16), (middles[2], bottom + 3))
    drawing.arrow((middles[3] + 70, bottom + 44), (middles[3] + 70, bottom + 3), both_ends=True)
    return drawing.to_svg()
