"""The page's words, in Korean and English; the reader's browser says which."""

WORDS = {
    "ko": {
        "text": "글",
        "text_pair": "둘째 글",
        "question": "질문",
        "context": "본문",
        "passage": "지문",
        "options": "보기, 한 줄에 하나씩",
        "ask": "물어보기",
        "answer": "답",
        "masks": "빈칸 채우기",
        "pieces": "조각",
        "attention": "주의",
        "layer": "층",
        "head": "헤드",
    },
    "en": {
        "text": "Text",
        "text_pair": "Second text",
        "question": "Question",
        "context": "Text that answers it",
        "passage": "Passage",
        "options": "Options, one a line",
        "ask": "Ask",
        "answer": "Answer",
        "masks": "Fill the gaps",
        "pieces": "Pieces",
        "attention": "Attention",
        "layer": "Layer",
        "head": "Head",
    },
}

# Gradio translates labels, and not these.
NO_MASK = "모델이 맞힐 자리에 [MASK]를 넣어 주세요. · Write [MASK] where the model is to guess."
NOTHING_FOUND = "글에서 찾지 못했습니다. · Nothing was found in the text."

EXAMPLES = {
    ("text",): [
        ["배우들의 연기가 훌륭해서 두 번이나 봤어요. 강력 추천합니다!"],
        ["기대하고 갔는데 이야기가 지루하고 시간이 아까웠다 ㅠㅠ"],
        ["김민수 씨는 지난 3월 부산에서 열린 한국전자 행사에 다녀왔다."],
    ],
    ("text", "text_pair"): [
        ["오늘 서울은 하루 종일 비가 내렸다.", "서울의 날씨가 맑았다."],
        ["비밀번호를 잊어버렸어요", "비밀번호를 다시 만들려면 어떻게 하나요?"],
    ],
    ("question", "context"): [
        [
            "도서관은 언제 쉬나요?",
            "우리 동네 도서관은 강가에 있다. 평일에는 오전 아홉 시에 문을 열고 저녁 여덟 시에 닫는다. 월요일에는 쉰다.",
        ],
    ],
}

MASK_EXAMPLES = [["이 영화는 배우들의 [MASK]가 훌륭하다."], ["오늘은 날씨가 정말 [MASK]."]]
