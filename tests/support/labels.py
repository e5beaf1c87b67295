"""Labelled questions in both languages, for tests of the calibration."""

import json
from pathlib import Path
from typing import Any

FACTS = [
    ("en", "How many working days does a refund take?",
     "Refunds are paid within five working days after we receive the goods."),
    ("en", "At what time does the library open on Sundays?",
     "On Sundays the library opens at ten in the morning and closes at four."),
    ("en", "Which port does the gateway listen on?",
     "The gateway listens on port 8443 unless the configuration names another."),
    ("en", "Who designed the old harbour bridge?",
     "The old harbour bridge was designed by the engineer Clara Lindqvist in 1911."),
    ("en", "How often must the water filter be replaced?",
     "The water filter must be replaced every six months, in hard water areas more often."),
    ("zh", "退款需要几个工作日？", "收到退货后，退款将在五个工作日内支付到原账户。"),
    ("zh", "图书馆星期日几点开门？", "图书馆星期日上午十点开门，下午四点闭馆。"),
    ("zh", "网关默认监听哪个端口？", "除非配置另行指定，网关默认监听端口 8443。"),
    ("zh", "旧港大桥是谁设计的？", "旧港大桥由工程师林克维斯特于一九一一年设计。"),
    ("zh", "净水器滤芯多久更换一次？", "净水器滤芯必须每六个月更换一次，水质较硬的地区应更勤。"),
]  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Twenty questions, half of them without the passage that answers, in their own language."""
    found = []
    for number, (lang, question, answer) in enumerate(FACTS):
        others = [text for other, _, text in FACTS if other == lang and text != answer]
        wrong = [{"id": f"{lang}-{text[:6]}", "text": text, "relevant": False} for text in others]
        right = {"id": f"{lang}-{answer[:6]}", "text": answer, "relevant": True}
        found.append(
            {"id": f"{number}+", "lang": lang, "question": question, "passages": [right, *wrong[:3]]}
        )
        found.append({"id": f"{number}-", "lang": lang, "question": question, "passages": wrong})
    return found


def write(path: Path, labelled: list[dict[str, Any]]) -> Path:
    """A JSONL file of them."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in labelled), encoding="utf-8")
    return path
