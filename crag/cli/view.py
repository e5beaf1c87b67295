"""What a person sees: the answer on standard output, everything about it on standard error."""

import codecs
import json
import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from crag.base.wording import counted, one_line

if TYPE_CHECKING:
    from crag.base.answer import Answer, ScoredDocument, Source

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
SHOWN_OF_A_DOCUMENT = 90

_SPEAK = {
    "correct": "they speak to the question",
    "ambiguous": "they may speak to the question",
    "incorrect": "they do not speak to the question",
}


def printable(text: str) -> str:
    """`text` without the control characters a document could steer a terminal with."""
    return _CONTROL.sub("", text)


def prepare_streams() -> None:
    """Let no character fail an output: a terminal that lacks it shows a question mark instead.

    A stream that was closed before the start keeps its number, lest the next file that is opened get it and
    receive what a library writes there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def write_answer(text: str, *, end: str = "\n") -> None:
    """The answer, or a piece of it, on standard output."""
    sys.stdout.write(printable(text) + end)
    sys.stdout.flush()


def write_json(text: str) -> None:
    """JSON on standard output, with escapes in place of characters that steer a terminal.

    Where standard output is not UTF-8, of all that are not ASCII: JSON in another encoding is no JSON.
    """
    text = _CONTROL.sub(_escaped, text)
    utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    sys.stdout.write((text if utf8 else _NOT_ASCII.sub(_escaped, text)) + "\n")
    sys.stdout.flush()


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"


def note(text: str) -> None:
    """One line on standard error; that nobody can be told does not end what is being done."""
    if sys.stderr:
        with suppress(OSError):
            print(" ".join(printable(text).splitlines()), file=sys.stderr)


def explain(answer: "Answer", *, verbose: bool = False) -> None:
    """Sources, verdict, path and cost of an answer on standard error."""
    for line in _explanation(answer, verbose):
        note(line)


def sources_of(answer: "Answer") -> None:
    """The sources of an answer, and what it warns of, on standard error."""
    for line in [*map(_source, answer.sources), *(f"Warning  {warning}" for warning in answer.warnings)]:
        note(line)


def cite(answer: "Answer") -> None:
    """Each source of an answer with the passage that it cites, on standard error."""
    if not answer.sources:
        note("The answer cites nothing.")
    texts = {document.id: document.text for document in answer.documents}
    for source in answer.sources:
        note(_source(source))
        for line in texts.get(source.id, "").splitlines():
            note(f"      {line}")


def _source(source: "Source") -> str:
    named = ", ".join([source.title or source.source, *_place(source)])
    return f"  [{source.n}] {named}" + (f" · {source.source}" if source.title and source.source else "")


def _explanation(answer: "Answer", verbose: bool) -> list[str]:
    lines = [""]
    if answer.sources:
        lines += ["Sources", *map(_source, answer.sources)]
    if verbose and answer.documents:
        lines.append("Documents")
        lines += [_document(document) for document in answer.documents]
    if answer.verdict:
        overall = answer.overall_score
        score = "nothing was scored" if overall is None else f"{overall:.2f}"
        lines.append(f"Documents: {_SPEAK[answer.verdict]} ({score})")
        if verbose and answer.thresholds:
            t = answer.thresholds
            bounds = f"correct from {t.upper:g}, incorrect up to {t.lower:g}"
            if t.upper == t.lower:
                bounds = f"good from {t.upper:g}"
            lines.append(f"Verdict  {answer.verdict} ({t.aggregate} score; {bounds}; thresholds: {t.source})")
    if answer.grounded is not None:
        lines.append("Grounded " + ("yes" if answer.grounded else f"no: {answer.grounding_reason}"))
    if answer.standalone_question:
        lines.append(f"Asked    {answer.standalone_question}")
    if answer.search_query:
        lines.append(f"Searched {answer.search_query}")
    lines.append(f"Path     {answer.path_text}")
    lines.append(f"Cost     {_cost(answer)}")
    if verbose:
        lines.append("Seconds  " + ", ".join(f"{node} {s:.2f}" for node, s in answer.timings.by_node.items()))
        models = answer.models.model_dump()
        lines.append("Models   " + ", ".join(f"{role}: {name}" for role, name in models.items() if name))
    lines += [f"Warning  {warning}" for warning in answer.warnings]
    return lines


def _place(source: "Source") -> list[str]:
    """Where in a source the answer stands: its page or row, and its section."""
    places = [
        f"p. {source.page}" if source.page is not None else "",
        f"row {source.row}" if source.row is not None else "",
        (source.section or "").removeprefix(source.title).removeprefix(" › "),
    ]
    return [place for place in places if place]


def _document(document: "ScoredDocument") -> str:
    score = "  –  " if document.score is None else f"{document.score:5.2f}"
    mark = "kept   " if document.kept else "dropped"
    short = one_line(document.text, SHOWN_OF_A_DOCUMENT)
    # Without a model the reason is a sentence of the document, perhaps the one that is shown.
    repeated = (document.reason or "").rstrip("…") in short
    reason = "" if repeated else f" ({document.reason})"
    return f"  {score} {mark} {document.origin:3} {document.title or document.source}: {short}{reason}"


def _cost(answer: "Answer") -> str:
    usage = answer.usage
    tokens = (
        "tokens unknown"
        if usage.input_tokens is None or usage.output_tokens is None
        else f"{usage.input_tokens} + {usage.output_tokens} tokens"
    )
    others = [(usage.retries, "more tries"), (usage.cached_calls, "from the cache")]
    aside = ", ".join(f"{count} {what}" for count, what in others if count)
    parts = [counted(usage.llm_calls, "model call") + (f" ({aside})" if aside else "")]
    if usage.llm_calls:
        parts.append(tokens)
    parts.append(counted(usage.web_calls, "web search", "web searches"))
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    parts.append(f"{answer.timings.total_s:.2f} s")
    return ", ".join(parts)
