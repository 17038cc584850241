"""Fine-tunes a pre-trained model to choose the right one of several options, evaluates it, and predicts.

python run_race.py --task_name=race --data_dir=RACE --init_checkpoint=run --output_dir=run/race \\
    --do_train --do_eval --do_predict
"""

from albert_tf.cli.training import run_race

if __name__ == "__main__":
    run_race()
