"""What was found, best first: meaning and exact words together, languages on a par, nothing said twice."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from crag.base.errors import KnowledgeBaseError
from crag.knowledge.store.schema import LANG, STRIPS
from crag.knowledge.store.store import Stored
from crag.text.terms import terms

LEXICAL = 0.5
"""Weight of the exact words against the meaning, which is spread over 0 to 1 among the candidates.

A convex combination finds more than reciprocal ranks do (Bruch et al., arXiv 2210.11934); that was so on
our own questions too. BM25 counts as a share of what the question could reach, so that a Chinese passage
that shares two characters with a question does not win over the English one that answers it.
"""

COVERED = 0.6
"""Weight of the share of the question's terms, weighed by rarity, that a passage or its file's name holds.

BM25 is content with one rare word said often; who asks with four words wants the passage that has them all.
"""

TRANSLATION = 0.82
"""Mean best cosine between the strips of two passages in two languages from which on one is a translation
of the other. Of 53 translated pairs 95 % lie above, of the nearest other passages 1 %."""

NEAR_DUPLICATE = 0.8
"""Share of common terms from which on two passages in one language say the same."""

_NAME_JOINTS = re.compile(r"[-_./\\]")
_HANDICAP = 0.9  # a little short of a par: the reader's language is worth something
_ALIKE = 0.9  # cosine below which two passages in one language are not compared word by word
_BACKGROUND = slice(3, 10)  # ranks that are near the question by topic and language, rarely by content


class Candidate(NamedTuple):
    """A passage that may answer: `meaning` is its cosine to the question, `words` its share of BM25.

    `covered` is the share of what the question names, 0 to 1, that it names too.
    """

    passage: Stored
    vector: "np.ndarray"  # unit, shape [dimension]
    strips: "np.ndarray"  # unit vectors, shape [strips, dimension]; the passage's own where none are stored
    meaning: float
    words: float
    covered: float

    @property
    def lang(self) -> str:
        """The language it was stored under."""
        return str(self.passage.metadata.get(LANG))

    @property
    def has_strips(self) -> bool:
        """Whether vectors of its strips are stored."""
        return STRIPS in self.passage.metadata


def candidate(passage: Stored, query: Any, words: float, named: Mapping[str, float]) -> Candidate:
    """A passage beside a question's unit vector and the weights of its terms.

    Raises KnowledgeBaseError when its strips cannot be read.
    """
    vector = unit(np.asarray(passage.vector, np.float32))
    strips = _strips(passage, vector)
    meaning = (float(vector @ query) + float((strips @ query).max())) / 2
    return Candidate(passage, vector, strips, meaning, words, _covered(passage, named))


def _covered(passage: Stored, named: Mapping[str, float]) -> float:
    about = (passage.metadata.get(key, "") for key in ("title", "source"))
    present = set(terms(_NAME_JOINTS.sub(" ", " ".join(map(str, about))))) | set(terms(passage.text))
    return sum(w for term, w in named.items() if term in present) / (sum(named.values()) or 1.0)


def unit(vector: Any) -> Any:
    """The vector with length 1; zeros stay zeros."""
    return vector / max(float(np.linalg.norm(vector)), 1e-12)


def _strips(passage: Stored, vector: Any) -> Any:
    stored = passage.metadata.get(STRIPS)
    if not stored:
        return vector[None, :]
    from crag.encoders.passages import decode_strips

    try:
        return decode_strips(str(stored), len(vector))
    except ValueError:
        raise KnowledgeBaseError(
            "the knowledge base holds vectors that cannot be read, damaged or of another version; "
            "ingest into a new folder with python -m crag.ingest PATH --kb DIR"
        ) from None


def ranked(candidates: list[Candidate], language: str) -> list[Candidate]:
    """Best first by meaning and words together, other languages on a par with the question's.

    Encoders put texts of one language nearer to each other. What that is worth is read off the passages
    that are only roughly near: in both languages they should be equally far.
    """
    own = sorted((c.meaning for c in candidates if c.lang == language), reverse=True)[_BACKGROUND]
    other = sorted((c.meaning for c in candidates if c.lang != language), reverse=True)[_BACKGROUND]
    handicap = _HANDICAP * max(0.0, sum(own) / len(own) - sum(other) / len(other)) if own and other else 0.0
    meaning = np.array([c.meaning + (handicap if c.lang != language else 0.0) for c in candidates])
    spread = float(np.ptp(meaning)) or 1.0
    score = (
        (1 - LEXICAL) * (meaning - meaning.min()) / spread
        + LEXICAL * np.array([c.words for c in candidates])
        + COVERED * np.array([c.covered for c in candidates])
    )
    return [candidates[i] for i in np.argsort(-score, kind="stable")]


def distinct(best_first: list[Candidate], language: str, k: int) -> list[Candidate]:
    """The `k` best, each content once, in the question's language if there; repetitions only to fill up.

    Candidates down to rank 3k may still replace their translations among the best.
    """
    chosen: list[Candidate] = []
    late: list[Candidate] = []
    texts: set[str] = set()
    for rank, candidate in enumerate(best_first):
        text = " ".join(candidate.passage.text.split())
        if text in texts:
            continue
        texts.add(text)
        same = next((i for i, other in enumerate(chosen) if _says_the_same(candidate, other)), None)
        if same is None:
            if len(chosen) < k:
                chosen.append(candidate)
        elif candidate.lang == language != chosen[same].lang:
            late.append(chosen[same])
            chosen[same] = candidate
        else:
            late.append(candidate)
        if len(chosen) == k and rank >= 3 * k:
            break
    return (chosen + late)[:k]


def _says_the_same(one: Candidate, other: Candidate) -> bool:
    if one.lang != other.lang:
        if not (one.has_strips and other.has_strips):
            return False
        cosines = one.strips @ other.strips.T
        return float(cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2 >= TRANSLATION
    if float(one.vector @ other.vector) < _ALIKE:
        return False
    a, b = set(terms(one.passage.text)), set(terms(other.passage.text))
    return len(a & b) >= NEAR_DUPLICATE * max(1, len(a | b))
