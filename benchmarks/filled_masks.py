"""What models write for the masks of twenty sentences of six kinds of text, chosen before any of them was trained.

python -m benchmarks.filled_masks --model=models/albert_ko_small --model=models/albert_ko_general

Prints a row for each sentence with the three most probable pieces of each model, and counts sentences of which the
first, and one of the first five, is among those that a reader would write; the sentences name them, before "=".
"""

from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_multi_string("model", ["models/albert_ko_small"], "Folder of a model.")

SENTENCES = {
    "encyclopaedia": """
        왕 임금 국왕 군주 = 세종은 조선의 제4대 [MASK]이다.
        서울 서울특별시 = 대한민국의 수도는 [MASK]이다.
        산소 = 물은 수소와 [MASK]로 이루어져 있다.
        대전 전쟁 = 제2차 세계 [MASK]은 1945년에 끝났다.""",
    "law": """
        기각 인용 각하 = 원고의 청구를 모두 [MASK]한다.
        시행 적용 = 이 법은 공포한 날부터 [MASK]한다.
        유죄 무죄 = 법원은 피고인에게 [MASK]를 선고하였다.""",
    "speeches": """
        국민 시민 의원 동포 내외 = 존경하는 [MASK] 여러분, 안녕하십니까.
        번영 통일 안정 안보 발전 = 한반도의 평화와 [MASK]을 위해 노력하겠습니다.
        성장 도약 발전 회복 = 우리 경제는 다시 [MASK]하고 있습니다.""",
    "guides": """
        반환 변환 출력 표시 = 이 함수는 문자열을 [MASK]합니다.
        클릭 선택 = 파일을 저장하려면 저장 단추를 [MASK]합니다.
        시작 부팅 = 설치가 끝나면 컴퓨터를 다시 [MASK]하세요.""",
    "talk": """
        축하 = 생일 [MASK]해!
        좋다 좋네 좋아 좋네요 좋아요 좋습니다 춥다 덥다 춥네 덥네 추워 더워 맑네 흐리네 = 오늘 날씨가 정말 [MASK].
        먹 = 점심에 뭐 [MASK]을까?
        고마워 미안 미안해 감사합니다 고맙습니다 = 도와줘서 정말 [MASK].""",
    "opinions": """
        재밌다 재미있다 최고 좋다 좋았다 재밌어요 재미있어요 재밌네 재미없다 좋아요 재밌었다 = 이 영화 정말 [MASK].
        연기 연기력 = 배우들의 [MASK]가 훌륭하다.
        아까워 아까운 아깝 = 돈이 [MASK] 영화였다.""",
}


def main(_):
    import albert_tf

    rows = [
        (kind, *(part.strip() for part in line.split("=")))
        for kind, lines in SENTENCES.items()
        for line in lines.strip().split("\n")
    ]
    guesses, counts = {}, {}
    for folder in FLAGS.model:
        found = albert_tf.load(folder).fill_mask([sentence for *_, sentence in rows], top_k=5)
        guesses[folder] = [[guess["text"] for guess in masks[0]] for masks in found]
        wanted = [set(words.split()) for _, words, _ in rows]
        first = sum(texts[0] in words for texts, words in zip(guesses[folder], wanted))
        among = sum(not words.isdisjoint(texts) for texts, words in zip(guesses[folder], wanted))
        counts[folder] = f"{first} first, {among} among five"
    print(f"| kind | sentence | {' | '.join(FLAGS.model)} |\n|{'---|' * (2 + len(FLAGS.model))}")
    for number, (kind, _, sentence) in enumerate(rows):
        print(f"| {kind} | {sentence} | {' | '.join(', '.join(guesses[each][number][:3]) for each in FLAGS.model)} |")
    print(f"| | right of {len(rows)} | {' | '.join(counts.values())} |")


if __name__ == "__main__":
    app.run(main)
