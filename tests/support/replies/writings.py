"""Replies that are texts: search queries, lists of them, and answers with citations."""

import json
from collections.abc import Iterator
from random import Random

from tests.support.replies.case import Case, thoughtful

_QUERIES = [
    "GDP Germany 2023", "HyDE retrieval accuracy", "检索增强生成 分块 大小", "error E-4012-B fix",
    "合同编号 HT2024-0031",
    "vitamin D dose 2.5 mg", "Python CSV 读取", "who built the tower 1889", "C++ vs Rust",
    "U.S. debt ceiling",
]  # fmt: skip
_WRAPPED = {
    "alone": ["{}", " {}\n"],
    "quoted": ['"{}"', "“{}”", "`{}`", "「{}」", "**{}**", "'{}'"],
    "label": [
        "Query: {}", "Search query: {}", "**Search query:** {}", "Keywords: {}", "查询：{}",
        "搜索关键词：{}", "检索词: {}",
        'Rewritten query: "{}"',
    ],
    "chatter": [
        "Here is the query: {}", 'Here\'s the search query:\n\n"{}"', "Sure! Here is the query:\n{}",
        "Sure: {}",
        "好的，查询如下：\n{}", "以下是搜索查询：{}", "Here is the rewritten query:\n```\n{}\n```",
        "Of course! Query: {}",
        "Certainly! Here's a concise query:\n\n**{}**", "当然，关键词如下：{}",
    ],
    "explained": ["{}\n\nThis query names the year.", "{}\n(以上查询保留了年份)",
        "```\n{}\n```\nIt is short."],
    "json": ['{{"query": "{}"}}', '```json\n{{"query": "{}"}}\n```', '["{}"]', '{{"search_query": "{}"}}'],
    "list": ["1. {}", "- {}", "• {}"],
}  # fmt: skip


def queries(random: Random) -> Iterator[Case]:
    """One search query; whatever is said around it is not searched for."""
    while True:
        query = random.choice(_QUERIES)
        kind, wrappings = random.choice(list(_WRAPPED.items()))
        reply, how = thoughtful(random, random.choice(wrappings).format(query))
        yield Case("query", kind + how, reply, query)


_LISTED = {
    "numbered": lambda n, q: f"{n}. {q}",
    "numbered )": lambda n, q: f"{n}) {q}",
    "wide": lambda n, q: f"{n}、{q}",
    "bullet": lambda _, q: f"- {q}",
    "star": lambda _, q: f"* {q}",
    "quoted": lambda n, q: f'{n}. "{q}"',
    "bold": lambda n, q: f"{n}. **{q}**",
    "named": lambda n, q: f"Query {n}: {q}",
    "zh named": lambda n, q: f"查询{n}：{q}",
    "lines": lambda _, q: q,
}


def query_lists(random: Random) -> Iterator[Case]:
    """Several queries, in order."""
    while True:
        asked = random.sample(_QUERIES, 3)
        kind = random.choice([*_LISTED, "json", "json object"])
        if kind == "json":
            reply = json.dumps(asked, ensure_ascii=False)
        elif kind == "json object":
            reply = "```json\n" + json.dumps({"queries": asked}, ensure_ascii=False) + "\n```"
        else:
            reply = "\n".join(_LISTED[kind](n, q) for n, q in enumerate(asked, 1))
            if random.random() < 0.3:
                reply = random.choice(("Here are three queries:\n\n", "Queries:\n", "以下是查询：\n")) + reply
        reply, how = thoughtful(random, reply)
        yield Case("queries", kind + how, reply, asked)


_STATEMENTS = [
    "Paris has 2.1 million people", "The tower was built in 1889", "巴黎是法国的首都", "It is not closed",
    "Use `a[7]` for it", "检索分为三步", "Wow! It works", "The ratio is 3 < 4",
]  # fmt: skip


def answers(random: Random) -> Iterator[Case]:
    """Answers with citations in many forms; the truth is the cleaned text and the cited numbers."""
    while True:
        parts, clean, cited = [], [], []
        sources = 4
        forms = random.choice(("[n]", "zh", "named", "several", "range", "missing"))
        for statement in random.sample(_STATEMENTS, random.randrange(1, 4)):
            stop = "。" if statement[-1] > "\u2e80" else "."
            numbers = sorted(random.sample(range(1, sources + 1), random.choice((1, 1, 2))))
            written, shown = _citation(random, forms, numbers)
            parts.append(f"{statement}{written}{stop}")
            clean.append(f"{statement}{''.join(f'[{n}]' for n in shown)}{stop}")
            cited += [n for n in shown if n not in cited]
        reply, how = thoughtful(random, " ".join(parts))
        yield Case("answer", forms + how, reply, (" ".join(clean), cited), sources)


def _citation(random: Random, form: str, numbers: list[int]) -> tuple[str, list[int]]:
    joined = ", ".join(map(str, numbers))
    match form:
        case "[n]":
            return "".join(f"[{n}]" for n in numbers), numbers
        case "zh":
            return "".join(random.choice((f"【{n}】", f"［{n}］", f"[来源{n}]")) for n in numbers), numbers
        case "named":
            return "".join(
                random.choice((f"[source {n}]", f"[Document {n}]", f"[^{n}]")) for n in numbers
            ), numbers
        case "several":
            return random.choice(
                (f"[{joined}]", f"[{joined.replace(', ', '，')}]", f"[{joined.replace(', ', ' and ')}]")
            ), numbers
        case "range":
            return "[1-3]", [1, 2, 3]
        case _:
            return f"[{numbers[0]}][{random.randrange(5, 99)}]", numbers[:1]
