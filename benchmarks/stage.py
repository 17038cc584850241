"""Runs the project's commands in processes of their own."""

import os
import subprocess
import sys

from albert_tf.base.startup import computes_in_bfloat16

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run_stage(script: str, **flag_values) -> None:
    """Prints and runs a script of the top level; its output goes to the terminal.

    Raises:
        subprocess.CalledProcessError: The script failed.
    """
    arguments = [f"--{name}" if value is True else f"--{name}={value}" for name, value in flag_values.items()]
    print(f"\npython {script} {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, os.path.join(ROOT, script), *arguments], check=True)


def pretrain_in_parts(parts: tuple[tuple[str, str, dict], ...], data: dict[str, str], output_dir: str) -> None:
    """Pre-trains in parts, each from the weights of the one before, and makes the folder to give away of each.

    Args:
        parts: Of each its name, its recipe in `configs/recipes` and the flags that differ.
        data: The folder of shards that each part learns from, by its name.
        output_dir: Gets `NAME_run` and `NAME_model` of each.
    """
    model = None
    for name, recipe, changes in parts:
        run, made = (os.path.join(output_dir, f"{name}_{what}") for what in ("run", "model"))
        run_stage(
            "run_pretraining.py",
            flagfile=os.path.join(ROOT, "configs", "recipes", recipe),
            input_file=os.path.join(data[name], "train-*.tfrecord"),
            output_dir=run,
            use_bfloat16=computes_in_bfloat16(),
            **({"init_checkpoint": model} if model else {}),
            **changes,
        )
        if not os.path.exists(made):
            run_stage("convert_checkpoint.py", input_path=run, output_dir=made)
        model = made
