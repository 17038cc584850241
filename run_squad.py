"""Fine-tunes a pre-trained model to find answers in texts, evaluates it, and predicts.

python run_squad.py --train_file=KorQuAD_v1.0_train.json --predict_file=KorQuAD_v1.0_dev.json --init_checkpoint=run \\
    --output_dir=run/korquad --do_train --do_eval --do_predict
"""

from albert_tf.cli.training import run_squad

if __name__ == "__main__":
    run_squad()
