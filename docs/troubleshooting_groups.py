"""What the sentences of docs/troubleshooting.md have in common, by the part of the library that says them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Group:
    """Sentences that go together.

    Attributes:
        files: Beginnings of paths below albert_tf/; the longest that fits decides.
        title: The heading, by language.
        meaning: What such a sentence means and what to do, by language.
    """

    files: tuple[str, ...]
    title: dict[str, str]
    meaning: dict[str, str]


INTRODUCTION = {
    "en": """# Troubleshooting

<!-- Written by docs/generate_troubleshooting.py from the code; change the code, or docs/troubleshooting_groups.py. -->

A command that can't go on says one sentence, `error: ...`, and exits with code 1. It names the file, flag or value, and mostly
says what to do. **Search this page for a few words of yours**; what changes from case to case (names, numbers) is `…` here.

| exit code | |
|---|---|
| 0 | done; also after SIGTERM or the first Ctrl-C, which save first: the same command goes on |
| 1 | a sentence of this page |
| 130, 143 | Ctrl-C and SIGTERM where nothing trains; while something does, a second Ctrl-C, or nothing to save (130) |
| anything else, or a traceback | a mistake of ours: please open an issue with the command and the last lines |

A command that was killed can be repeated as it was, `create_pretraining_data.py` with `--resume`. What it has left half-written
is called `.NAME.unfinished` or stands in a list of this name, `.unfinished`; whoever would read it says so, and the next command
for the folder clears it away. One command at a time writes to a folder, and a second one on the same machine is refused; the
lock is the system's, and goes with the process. [Between machines](pretraining.md#stopping-and-going-on) there is none.

## It runs, but not well
| what you see | why, and what to do |
|---|---|
| the masked-LM loss stays at the unigram entropy of the manifest | the model has found which pieces are frequent, and nothing more. Short runs need `--bias_correction`; small models learn sooner from `"position_initializer": "sinusoidal"` ([why](korean_small_model.md)) |
| the loss jumps up, or steps are skipped | the learning rate is too high for the batch: 0.00176 belongs to 4,096 examples. `--scale_learning_rate=sqrt`, or a longer warm-up |
| the held-out loss rises while the training loss falls | a small text is learnt by heart. The best checkpoint is kept; `--early_stopping=2` saves the time |
| sentence order accuracy of 100%, or of 50% for ever | 100%: the data tell the label; make them with this version. 50%: documents of a sentence or two have no order; try `--sentence_pair=halves` |
| many unknown words | `build_vocab.py --report` says how many. A larger `--limit_alphabet`, or `--alphabet=all`; and the `tokenizer.json` that belongs to the vocabulary must lie beside it |
| a classifier that always says the same | too few steps, or too high a rate from random weights. Give it `--init_checkpoint`; `--num_trials=3` shows whether it is chance |
| out of memory on a TPU or GPU | a smaller part of the batch: `--gradient_accumulation_steps`; or `--remat=block`. `plan_tpu.py` says what fits ([more](tpu.md#what-fits-before-anything-is-rented)) |
| the first step takes a minute | it is compiled; the others don't |
| steps are slow on a CPU | `--use_bfloat16` where the processor has it; from Python, `TF_CPU_ALLOCATOR_USE_BFC=true` before TensorFlow is imported ([why](performance.md#on-a-cpu)) |
| TensorFlow sees no GPU or TPU | the run warns of it. On a TPU VM plain tensorflow must not be installed beside tensorflow-tpu ([how](tpu.md#install)) |
""",
    "ko": """# 문제 해결

<!-- Written by docs/generate_troubleshooting.py from the code; change the code, or docs/troubleshooting_groups.py. -->

더 갈 수 없는 명령은 `error: ...` 한 문장을 말하고 1로 끝납니다. 문장은 파일이나 플래그나 값을 대며, 대개 무엇을 할지도 말합니다. **문장의 낱말 몇
개로 이 쪽을 찾아보세요.** 경우에 따라 달라지는 것(이름, 숫자)은 여기서 `…`입니다.

| 종료 코드 | |
|---|---|
| 0 | 끝났습니다. SIGTERM이나 첫 Ctrl-C도 저장하고 0으로 끝나며, 같은 명령으로 이어 갑니다 |
| 1 | 이 쪽의 문장 하나 |
| 130, 143 | 학습하지 않을 때의 Ctrl-C와 SIGTERM. 학습할 때는 두 번째 Ctrl-C, 또는 저장할 것이 없을 때(130) |
| 그 밖의 것, 또는 트레이스백 | 우리 잘못입니다. 명령과 마지막 몇 줄을 이슈로 알려 주세요 |

죽은 명령은 그대로 다시 실행하면 됩니다. `create_pretraining_data.py`에는 `--resume`을 붙입니다. 쓰다 만 것은 이름이 `.이름.unfinished`이거나 `.unfinished`라는
목록에 적혀 있습니다. 그것을 읽으려는 명령은 그렇다고 말하고, 그 폴더에 쓰는 다음 명령이 치웁니다. 한 폴더에는 한 번에 한 명령만 쓰며, 같은 기계의 두 번째 명령은
거절합니다. 잠금은 운영체제의 것이어서 프로세스와 함께 사라집니다. [기계 사이](pretraining.ko.md#stopping-and-going-on)에는 잠금이 없습니다.

## 돌기는 하는데 신통치 않다면
| 보이는 것 | 까닭과 할 일 |
|---|---|
| 마스크 손실이 매니페스트의 유니그램 엔트로피에 머문다 | 어느 조각이 잦은지만 알아낸 것입니다. 짧은 학습에는 `--bias_correction`이 필요하고, 작은 모델은 `"position_initializer": "sinusoidal"`이면 더 빨리 배웁니다([까닭](korean_small_model.ko.md)) |
| 손실이 튀어 오르거나 단계를 건너뛴다 | 배치에 견주어 학습률이 높습니다. 0.00176은 예제 4,096개의 것입니다. `--scale_learning_rate=sqrt`나 더 긴 웜업 |
| 학습 손실은 줄어도 보류 손실이 는다 | 적은 텍스트를 외우는 것입니다. 가장 나은 체크포인트는 남습니다. `--early_stopping=2`가 시간을 아낍니다 |
| 문장 순서 정확도가 100%이거나 내내 50%이다 | 100%: 데이터가 답을 알려 줍니다. 이 버전으로 새로 만드세요. 50%: 한두 문장짜리 문서에는 순서가 없습니다. `--sentence_pair=halves`를 써 보세요 |
| 모르는 낱말이 많다 | `build_vocab.py --report`가 얼마나 되는지 알려 줍니다. `--limit_alphabet`을 늘리거나 `--alphabet=all`. 어휘의 `tokenizer.json`이 곁에 있어야 합니다 |
| 분류기가 늘 같은 답을 한다 | 단계가 너무 적거나, 무작위 가중치에서 학습률이 너무 높습니다. `--init_checkpoint`를 주고, `--num_trials=3`으로 우연인지 보세요 |
| TPU나 GPU의 메모리가 모자란다 | `--gradient_accumulation_steps`로 배치를 나누거나 `--remat=block`. `plan_tpu.py`가 들어가는 것을 알려 줍니다 |
| 첫 단계가 1분 걸린다 | 컴파일하는 것입니다. 다음부터는 그렇지 않습니다 |
| CPU에서 느리다 | 프로세서가 할 수 있으면 `--use_bfloat16`. Python에서는 TensorFlow를 불러오기 전에 `TF_CPU_ALLOCATOR_USE_BFC=true`([까닭](performance.ko.md#on-a-cpu)) |
| TensorFlow가 GPU나 TPU를 보지 못한다 | 명령이 경고합니다. TPU VM에는 보통 tensorflow가 tensorflow-tpu와 함께 있으면 안 됩니다([설치](tpu.ko.md#install)) |
""",
}

END = {
    "en": """## Not in the list
Warnings (`warning: ...`) don't end a command; they say what it does instead. Messages of TensorFlow itself are kept away from the
terminal; with `TF_CPP_MIN_LOG_LEVEL=0` in the environment they come back.
""",
    "ko": """## 목록에 없는 것
경고(`warning: ...`)는 명령을 끝내지 않고, 대신 무엇을 하는지 말합니다. TensorFlow의 메시지는 화면에 나오지 않게 해 두었습니다. 환경 변수
`TF_CPP_MIN_LOG_LEVEL=0`이면 다시 나옵니다.
""",
}

GROUPS = (
    Group(
        (
            "cli/",
            "files.py",
            "folder_lock.py",
            "whole_folders.py",
            "json_types.py",
            "text_encoding.py",
            "shipped_files.py",
            "notebook/",
        ),
        {"en": "Flags", "ko": "플래그"},
        {
            "en": """
A flag is missing, misspelt, contradicts another one, or names a file that can't be read or written. `--help` lists the flags
of a command with their defaults. All flags of google-research/albert are known; some no longer have an effect
([which](coming-from-google-albert.md#flag-by-flag)).""",
            "ko": """
플래그가 없거나, 이름이 틀렸거나, 다른 플래그와 어긋나거나, 읽거나 쓸 수 없는 파일을 가리킵니다. `--help`가 명령의 플래그와 기본값을 보여 줍니다.
google-research/albert의 플래그는 모두 알며, 몇은 더는 하는 일이 없습니다([목록](coming-from-google-albert.ko.md#flag-by-flag)).""",
        },
    ),
    Group(
        ("corpus/",),
        {"en": "Reading a corpus", "ko": "말뭉치 읽기"},
        {
            "en": """
Text that is to become a vocabulary or training data can't be read. The sentence names the file, and of a bad line its number.
`--on_bad_text=skip` or `replace` goes on where single lines are bad; a file that mostly is has another encoding or another
form than its name says. Korean files of older Windows programs are CP949: `iconv -f CP949 -t UTF-8 old.txt > new.txt`
([forms of input](pretraining_data.md#input)).""",
            "ko": """
어휘나 학습 데이터가 될 텍스트를 읽을 수 없습니다. 문장이 파일을, 나쁜 줄이면 줄 번호까지 댑니다. 몇 줄만 나쁘면 `--on_bad_text=skip`이나
`replace`로 계속하고, 거의 다 나쁘면 인코딩이나 형식이 이름과 다른 것입니다. 오래된 윈도우 프로그램의 한국어 파일은 CP949입니다:
`iconv -f CP949 -t UTF-8 old.txt > new.txt` ([입력의 형식](pretraining_data.ko.md#input)).""",
        },
    ),
    Group(
        (
            "tokenization/",
            "cli/build_vocab.py",
            "cli/tokenizer_flags.py",
        ),
        {"en": "Vocabularies and tokenizers", "ko": "어휘와 토크나이저"},
        {
            "en": """
A vocabulary, a `tokenizer.json` or a SentencePiece model is broken, is of another kind than the flags say, or contradicts what lies
beside it. A tokenizer belongs to its data and its model: don't change switches afterwards, but build a vocabulary with them
([switches](tokenizer.md#what-happens-to-a-text)). From Python, arguments that contradict each other.""",
            "ko": """
어휘나 `tokenizer.json`, SentencePiece 모델이 망가졌거나, 플래그가 말한 종류가 아니거나, 곁에 있는 것과 어긋납니다. 토크나이저는 데이터와 모델에
딸린 것이니 스위치를 나중에 바꾸지 말고 그 스위치로 어휘를 만드세요([스위치](tokenizer.ko.md#what-happens-to-a-text)). Python에서는 서로 어긋나는
인자입니다.""",
        },
    ),
    Group(
        (
            "pretraining_data/build/",
            "cli/create_pretraining_data.py",
        ),
        {"en": "Making training data", "ko": "학습 데이터 만들기"},
        {
            "en": """
The shards can't be made, or not where they should go. What was there before is as it was. After anything but a bad line of text the
same command with `--resume` goes on where it was ([more](pretraining_data.md#output)).""",
            "ko": """
샤드를 만들 수 없거나, 놓일 곳에 놓을 수 없습니다. 전에 있던 것은 그대로입니다. 나쁜 줄 때문이 아니라면 같은 명령에 `--resume`을 붙여 하던 데서
이어 갑니다([자세히](pretraining_data.ko.md#output)).""",
        },
    ),
    Group(
        ("pretraining_data/",),
        {"en": "Reading training data", "ko": "학습 데이터 읽기"},
        {
            "en": """
Shards and manifest don't go together, are damaged, unfinished or of a version whose labels were told by lengths, or don't fit the model
or the flags. Make them anew in one go; `--on_damaged_shard=skip` trains without damaged ones
([more](pretraining.md#the-order-of-examples)).""",
            "ko": """
샤드와 매니페스트가 서로 맞지 않거나, 망가졌거나, 끝나지 않았거나, 길이가 라벨을 알려 주던 버전의 것이거나, 모델이나 플래그와 맞지 않습니다.
한 번에 새로 만드세요. `--on_damaged_shard=skip`은 망가진 것을 빼고 학습합니다([자세히](pretraining.ko.md#the-order-of-examples)).""",
        },
    ),
    Group(
        (
            "config.py",
            "modeling/",
            "objectives/",
        ),
        {"en": "Model and configuration", "ko": "모델과 설정"},
        {
            "en": """
`albert_config.json` has a key or a value that no model can have, the inputs of a model are not what it takes, or weights are of another
shape ([keys and inputs](model.md)).""",
            "ko": """
`albert_config.json`에 어떤 모델도 가질 수 없는 키나 값이 있거나, 모델의 입력이 받는 것이 아니거나, 가중치의 모양이 다릅니다
([키와 입력](model.ko.md)).""",
        },
    ),
    Group(
        (
            "optimization/",
            "training/settings.py",
            "training/devices/",
            "cli/training_flags.py",
            "cli/run_pretraining.py",
            "pretraining/",
        ),
        {"en": "Training: settings and optimizer", "ko": "학습: 설정과 최적화기"},
        {
            "en": """
Numbers of steps, batch sizes, rates or devices don't go together. Batch sizes are over all devices, and each is divided by the number of
replicas and of `--gradient_accumulation_steps` ([batches](pretraining.md#batches)). A TPU that can't be reached is mostly one that
another process holds, or an installation with two TensorFlows ([traps](tpu.md#known-traps-and-what-guards-against-each)).""",
            "ko": """
단계 수, 배치 크기, 학습률, 장치가 서로 맞지 않습니다. 배치 크기는 모든 장치를 합친 것이고 복제본 수와 `--gradient_accumulation_steps`로
나누어집니다([배치](pretraining.ko.md#batches)). TPU에 닿지 못하면 대개 다른 프로세스가 잡고 있거나 TensorFlow가 둘 설치된 것입니다
([함정](tpu.ko.md#known-traps-and-what-guards-against-each)).""",
        },
    ),
    Group(
        (
            "training/",
            "checkpoint_files.py",
            "cli/run_flags.py",
            "cli/model_files.py",
        ),
        {"en": "Training: folder and checkpoints", "ko": "학습: 폴더와 체크포인트"},
        {
            "en": """
`--output_dir` holds another run, or one that was told something else; a checkpoint is damaged, missing or of another model; or another
process is training there. Leave out the flag that is named, and the run's own value is taken; for other values take another folder, and
begin from this one with `--init_checkpoint` ([stopping and going on](pretraining.md#stopping-and-going-on)). Where steps were not finite
the batches lie in the folder ([more](pretraining.md#when-something-goes-wrong)).""",
            "ko": """
`--output_dir`에 다른 학습이나 다른 말을 들은 학습이 있거나, 체크포인트가 망가졌거나 없거나 다른 모델의 것이거나, 다른 프로세스가 거기서 학습하고
있습니다. 이름을 댄 플래그를 빼면 그 학습의 값을 씁니다. 다른 값을 쓰려면 다른 폴더에서 `--init_checkpoint`로 시작하세요
([멈추고 이어 가기](pretraining.ko.md#stopping-and-going-on)). 유한하지 않은 단계의 배치는 폴더에 남아 있습니다.""",
        },
    ),
    Group(
        (
            "finetuning/",
            "rows/",
            "cli/finetuning_command.py",
            "cli/run_classifier.py",
            "cli/run_ner.py",
            "cli/run_race.py",
            "cli/run_squad.py",
        ),
        {"en": "Fine-tuning: files and tasks", "ko": "미세 조정: 파일과 과제"},
        {
            "en": """
A labelled file is not what the task reads, by file and line; labels are wrong or too few; or lengths leave no room. `--on_bad_row=skip`
leaves bad rows out and counts them. What each task reads: [labels and scores](classification.md#data),
[answers](question_answering.md#data), [entities](entities.md), [multiple choice](multiple_choice.md#data).""",
            "ko": """
라벨 붙은 파일이 과제가 읽는 것이 아니거나(파일과 줄을 댑니다), 라벨이 틀렸거나 너무 적거나, 길이에 남는 자리가 없습니다. `--on_bad_row=skip`은 나쁜
줄을 빼고 셉니다. 과제마다 읽는 것: [분류와 점수](classification.ko.md#data), [답](question_answering.ko.md#data), [개체명](entities.ko.md),
[객관식](multiple_choice.ko.md#data).""",
        },
    ),
    Group(
        (
            "interchange/",
            "cli/convert_checkpoint.py",
            "cli/publish_model.py",
        ),
        {"en": "Other libraries' checkpoints", "ko": "다른 라이브러리의 체크포인트"},
        {
            "en": """
A checkpoint can't be read, asks for something that our models don't compute, or can't be said in the other format. Nothing was
written ([what can](checkpoints.md)).""",
            "ko": """
체크포인트를 읽을 수 없거나, 우리 모델이 계산하지 않는 것을 바라거나, 저쪽 형식으로 나타낼 수 없습니다. 쓴 것은 없습니다
([무엇이 되나](checkpoints.ko.md)).""",
        },
    ),
    Group(
        (
            "asked_texts.py",
            "batch_prediction/",
            "exports.py",
            "litert/",
            "server/",
            "serving/",
            "cli/predict.py",
            "cli/serve.py",
            "cli/playground.py",
            "cli/export_model.py",
        ),
        {"en": "Asking a model", "ko": "모델에 묻기"},
        {
            "en": """
The folder was never fine-tuned or exported, a line can't be answered, or a library that is needed is missing. What `serve.py` answers with
codes 400, 404, 405, 408, 413, 431, 500 and 503 is among these sentences ([more](serving.md)).""",
            "ko": """
미세 조정하거나 내보낸 적이 없는 폴더이거나, 답할 수 없는 줄이거나, 필요한 라이브러리가 없습니다. `serve.py`가 400, 404, 405, 408, 413, 431, 500, 503으로 답하는
문장도 여기 있습니다([자세히](serving.ko.md)).""",
        },
    ),
    Group(
        (
            "tpu/",
            "cli/plan_tpu.py",
        ),
        {"en": "Planning a TPU", "ko": "TPU 계획"},
        {
            "en": """
The TPU's compiler is not installed, refuses the step, or says that it doesn't fit ([more](tpu.md#what-fits-before-anything-is-rented)).""",
            "ko": """
TPU 컴파일러가 없거나, 단계를 거절하거나, 들어가지 않는다고 합니다([자세히](tpu.ko.md#what-fits-before-anything-is-rented)).""",
        },
    ),
    Group(
        ("cli/demo.py",),
        {"en": "The demo", "ko": "데모"},
        {
            "en": """
`make demo` keeps what is in its folder unless it made it itself.""",
            "ko": """
`make demo`는 스스로 만든 것이 아니면 폴더에 있는 것을 그대로 둡니다.""",
        },
    ),
)
