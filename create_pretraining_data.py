"""Turns text, JSON lines or Parquet into TFRecord shards for pre-training, and shows what is in a shard.

python create_pretraining_data.py --input_file=corpus/*.txt --vocab_file=vocab/vocab.txt \\
    --output_file=data/train.tfrecord --num_shards=16 --max_seq_length=128 --num_workers=8
python create_pretraining_data.py --inspect=data/train-00000-of-00016.tfrecord --plot=shard.png
"""

from albert_tf.cli.training import create_pretraining_data

if __name__ == "__main__":
    create_pretraining_data()
