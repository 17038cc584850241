"""Says what a training step takes on a TPU, and which batch fits, by asking the TPU's own compiler. Needs no TPU.

python plan_tpu.py --albert_config_file=configs/albert_base_v2.json --tpu=v5e --train_batch_size=32 --max_seq_length=512
python plan_tpu.py --albert_config_file=configs/albert_base_v2.json --max_seq_length=512 --output_dir=plan
"""

from albert_tf.cli.plan_tpu import run

if __name__ == "__main__":
    run()
