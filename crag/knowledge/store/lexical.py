"""Exact words: BM25 over the passages, for the codes, names and numbers that vectors miss."""

import hashlib
import json
import math
import re
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Sequence, Set
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from crag.knowledge.store.chroma import LEXICAL
from crag.knowledge.store.schema import WRITING
from crag.knowledge.store.store import KnowledgeBase
from crag.settings.settings import Settings
from crag.text.terms import terms

_IDS = "passages.json"
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d]|.*\d[-_./]\d).{4,}")  # digits with letters or joined digits
_FEW = 5
_BUILDING = "building-"
_BUILDING_TIME = 3600.0  # seconds after which whoever was building has been killed


class Match(NamedTuple):
    """A passage that shares words with the query.

    `score` in (0, 1] is the share of the BM25 score that a passage full of the query's words would reach.
    """

    id: str
    score: float


class LexicalIndex:
    """BM25 over passages, in memory, immutable.

    Lucene's variant of Robertson and Spärck Jones's formula, whose term weights are never negative.
    """

    def __init__(
        self, ids: list[str], vocabulary: dict[str, int], frequencies: list[int], model: Any
    ) -> None:
        self._ids = ids
        self._vocabulary = vocabulary
        self._frequencies = frequencies  # passages that hold a term, by the term's number
        self._model = model

    @classmethod
    def build(cls, ids: Sequence[str], texts: Sequence[str]) -> "LexicalIndex":
        """Index one text for each id; about half a millisecond for a text."""
        import bm25s

        vocabulary: dict[str, int] = {}
        numbered = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)] for text in texts]
        model = None
        if vocabulary:
            model = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
            model.index((numbered, vocabulary), show_progress=False)
        counted = Counter(number for numbers in numbered for number in set(numbers))
        return cls(list(ids), vocabulary, [counted[number] for number in range(len(vocabulary))], model)

    def search(self, query: str, n: int, allowed: Set[str] | None = None) -> list[Match]:
        """At most `n` passages that share a term with `query`, best first; none without a shared term.

        Only passages whose id is in `allowed`, where that is given, are found.
        """
        wanted = terms(query)
        known = [self._vocabulary[term] for term in wanted if term in self._vocabulary]
        if self._model is None or not known:
            return []
        scores = self._model.get_scores(known)
        most = sum(self.rarity(term) for term in wanted)
        ranked = (i for i in (-scores).argsort(kind="stable") if allowed is None or self._ids[i] in allowed)
        return [Match(self._ids[i], float(scores[i]) / most) for i in islice(ranked, n) if scores[i] > 0]

    def code_holders(self, query: str) -> dict[str, float]:
        """Passages that hold codes of `query` (terms like "e-4012-b") which few others hold.

        The value is the share of the query's codes that the passage holds.
        """
        codes = {term for term in terms(query) if _CODE.fullmatch(term)}
        share: Counter[str] = Counter()
        for code in codes:
            number = self._vocabulary.get(code)
            if number is None or self._frequencies[number] > _FEW:
                continue
            begin, end = self._model.scores["indptr"][number : number + 2]
            for i in self._model.scores["indices"][begin:end]:
                share[self._ids[i]] += 1
        return {id_: held / len(codes) for id_, held in share.items()}

    def rarity(self, term: str) -> float:
        """The highest score a term can add: its inverse document frequency, in nats."""
        number = self._vocabulary.get(term)
        held = 0 if number is None else self._frequencies[number]
        return math.log(1 + (len(self._ids) - held + 0.5) / (held + 0.5))

    def save(self, folder: Path) -> None:
        """Write the index as a folder, whole or not at all."""
        if self._model is None:
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Not mkdtemp, whose folders nobody else may read: others may use the knowledge base too.
        fresh = folder.with_name(f"{_BUILDING}{uuid.uuid4().hex[:8]}")
        fresh.mkdir()
        try:
            self._model.save(fresh, show_progress=False)
            (fresh / _IDS).write_text(json.dumps([self._ids, self._vocabulary, self._frequencies]), "utf-8")
            for old in folder.parent.iterdir():
                if old != fresh and _is_outdated(old):
                    shutil.rmtree(old, ignore_errors=True)
            fresh.rename(folder)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    @classmethod
    def load(cls, folder: Path) -> "LexicalIndex":
        """Read what `save` wrote. Raises OSError or ValueError when it is not there or damaged."""
        import bm25s

        ids, vocabulary, frequencies = json.loads((folder / _IDS).read_text("utf-8"))
        return cls(ids, vocabulary, frequencies, bm25s.BM25.load(folder))


def lexical_index(kb: KnowledgeBase) -> LexicalIndex:
    """The index of a knowledge base as it is now: the stored one when it still fits, else a new one."""
    marker = kb.marker()
    folder = _folder(kb.settings, marker)
    try:
        return LexicalIndex.load(folder)
    except (OSError, EOFError, ValueError, KeyError):
        index = LexicalIndex.build(*kb.texts())
    if marker.startswith(WRITING):
        return index  # out of date before it could be of use to anybody
    try:
        index.save(folder)
    except OSError:
        # A read-only place costs time at the next start, nothing else.
        return index
    return index


def _is_outdated(folder: Path) -> bool:
    """Whether it is an index of ours that nobody is writing any more; other folders are not ours."""
    with suppress(OSError):
        if folder.name.startswith(_BUILDING):
            return time.time() - folder.stat().st_mtime >= _BUILDING_TIME
        return (folder / _IDS).is_file()
    return False


def _folder(settings: Settings, marker: str) -> Path:
    name = hashlib.sha256(f"{settings.collection}|{marker}".encode()).hexdigest()[:16]
    if settings.chroma_url is None:
        return settings.kb.absolute() / LEXICAL / name
    import platformdirs

    place = hashlib.sha256(f"{settings.chroma_url}|{settings.collection}".encode()).hexdigest()[:16]
    return Path(platformdirs.user_cache_dir("crag")) / "lexical" / place / name
