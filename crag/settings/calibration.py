"""The file that `crag.calibrate` writes: what a user's own labels say, and of which evaluator."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from crag.base.errors import SettingsError
from crag.base.files import unique

AGAIN = "run python -m crag.calibrate again, or unset CRAG_CALIBRATION"

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Unit = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class EvaluatorIdentity(_Part):
    """Whose scores are meant: an encoder or a grading model, and for a model the hash of its prompt.

    Scores of different evaluators do not compare, so that thresholds hold for one alone.
    """

    kind: Literal["embedded", "llm"]
    model: str
    prompt: str | None = None

    def __str__(self) -> str:
        if self.kind == "embedded":
            return f"the embedded evaluator on {self.model}"
        return f"the grading model {self.model} with prompt {self.prompt}"


class CalibratedLine(_Part):
    """Weights, one for each feature, and an intercept: log odds of relevance."""

    weights: list[Number]
    intercept: Number


class Calibration(_Part):
    """Thresholds and, if the labels were good for more, lines of the embedded evaluator.

    `lines` replace the shipped ones for "same" and "cross" (question and passage in one language or two);
    `data` tells which labels, `wish` what was asked for, `figures` what cross-validation found.
    """

    format: Literal[1] = 1
    created: str
    evaluator: EvaluatorIdentity
    upper: Unit
    lower: Unit
    aggregate: Literal["max", "mean"]
    features: list[str] = []
    lines: dict[Literal["same", "cross"], CalibratedLine] = {}
    data: dict[str, Any] = {}
    wish: dict[str, Any] = {}
    figures: dict[str, Any] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.lower < self.upper:
            raise ValueError(f"lower ({self.lower}) must be below upper ({self.upper})")
        if any(len(line.weights) != len(self.features) for line in self.lines.values()):
            raise ValueError(f"a line must have {len(self.features)} weights, one for each feature")
        return self


def load_calibration(path: Path) -> Calibration:
    """Read and check a calibration. Raises SettingsError, one line with the remedy."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=unique)
        return Calibration.model_validate(content)
    except FileNotFoundError:
        raise SettingsError(f"there is no calibration {path}; {AGAIN}") from None
    except OSError as error:
        raise SettingsError(
            f"the calibration {path} cannot be read ({error.strerror or error}); {AGAIN}"
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        told = f"{place}: {message}" if place else message
        raise SettingsError(f"the calibration {path} is damaged ({told}); {AGAIN}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"the calibration {path} is no JSON ({error}); {AGAIN}") from None


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Write the file, creating its folder; what was there is replaced whole. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(calibration.model_dump_json(indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)
