"""The judge's prompts for Chinese rows: instructions and examples of our own in ragas's prompt objects."""

import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _text() -> str:
    return files("crag.eval.metrics").joinpath("chinese.json").read_text(encoding="utf-8")


def fingerprint() -> str:
    """SHA-256 of the Chinese prompts; the English ones are those of the installed ragas."""
    return hashlib.sha256(_text().encode()).hexdigest()


def speak_chinese(metric: Any, name: str) -> None:
    """Give each prompt of a metric its Chinese instruction and examples."""
    for attribute, given in json.loads(_text())[name].items():
        prompt = getattr(metric, attribute)
        prompt.instruction = given["instruction"]
        prompt.examples = [
            (prompt.input_model(**example["input"]), prompt.output_model(**example["output"]))
            for example in given["examples"]
        ]
        prompt.language = "chinese"
