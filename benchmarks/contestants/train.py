"""Trains one contestant, in a process of its own, which `benchmarks.same_hour` starts."""

import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")  # for KerasHub as well
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

from albert_tf.base.files import write_json
from benchmarks.contestants.albert_tf_library import AlbertTf
from benchmarks.contestants.hugging_face import HuggingFace
from benchmarks.contestants.keras_hub_library import KerasHub
from benchmarks.contestants.setting import Setting

CONTESTANTS = {
    "albert_tf": lambda setting: AlbertTf(setting, "muon", setting.flags.muon_learning_rate, follows_recipe=True),
    "albert_tf_adamw": lambda setting: AlbertTf(setting, "adamw", setting.flags.learning_rate),
    "hugging_face": HuggingFace,
    "keras_hub": KerasHub,
    "keras_hub_xla": lambda setting: KerasHub(setting, jit_compile=True),
}


def main():
    name, settings, path = sys.argv[1:]
    setting = Setting(json.loads(settings))
    contestant = CONTESTANTS[name](setting)
    num_steps = max(10, round(60 * setting.flags.minutes * contestant.steps_per_second()))
    started_at = time.perf_counter()
    contestant.train(num_steps)
    seconds = time.perf_counter() - started_at
    result = {
        "steps": num_steps,
        "seconds": seconds,
        "examples_per_second": num_steps * setting.batch_size / seconds,
        "masked_lm_loss": contestant.masked_lm_loss(),
    }
    if setting.flags.data_dir:
        result["accuracy"] = contestant.accuracy()
    write_json(path, result)


if __name__ == "__main__":
    main()
