"""Pre-trains ALBERT on the shards that create_pretraining_data.py made, and evaluates it on held-out documents.

python run_pretraining.py --input_file=data/train*.tfrecord --albert_config_file=configs/albert_small.json \\
    --output_dir=run --do_train --do_eval --train_batch_size=64 --num_train_steps=100000 --num_warmup_steps=3125
"""

from albert_tf.cli.training import run_pretraining

if __name__ == "__main__":
    run_pretraining()
