"""Says how long a pre-training takes: measures a minute of it on this machine, and estimates other ones.

python plan_training.py --flagfile=configs/recipes/ko_small.cfg --input_file='data/train-*.tfrecord'
"""

from albert_tf.cli.plan_training import run

if __name__ == "__main__":
    run()
