"""Which thresholds are in force: a flag's, the environment's, a calibration's or the defaults."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from crag.base.choices import Origin
from crag.base.errors import SettingsError
from crag.judging.grading import Thresholds
from crag.models.prompting import fingerprint
from crag.settings.calibration import CalibratedLine, Calibration, EvaluatorIdentity
from crag.settings.settings import Settings


class InForce(NamedTuple):
    """Thresholds with their origin; of a calibration that fits, its lines.

    `strip_lower` is the lower threshold for scores of the embedded evaluator, which also judges strips where
    a model grades documents. `warnings` tell of a calibration that was made for another evaluator.
    """

    thresholds: Thresholds
    source: Origin
    strip_lower: float
    features: Sequence[str] = ()
    lines: Mapping[str, CalibratedLine] = MappingProxyType({})
    warnings: tuple[str, ...] = ()


def embedded_identity(model_id: str) -> EvaluatorIdentity:
    """The embedded evaluator on an encoder."""
    return EvaluatorIdentity(kind="embedded", model=model_id)


def model_identity(model: str) -> EvaluatorIdentity:
    """A chat model that grades documents one by one."""
    return EvaluatorIdentity(kind="llm", model=model, prompt=fingerprint("grade"))


def in_force(settings: Settings, evaluator: EvaluatorIdentity | None) -> InForce:
    """The thresholds for an evaluator; None is a grader that the caller brings.

    Each of upper, lower and aggregate that somebody set beats the calibration's. Raises SettingsError where
    a set one contradicts a calibrated one.
    """
    set_ones = Thresholds(upper=settings.upper, lower=settings.lower, aggregate=settings.aggregate)
    known = settings.calibrated
    if known is None:
        return InForce(set_ones, settings.thresholds_source, settings.lower)
    if known.evaluator != evaluator:
        in_use = str(evaluator) if evaluator else "a grader of your own"
        warning = (
            f"the calibration {settings.calibration} is ignored: it is for {known.evaluator}, "
            f"but {in_use} is in use"
        )
        return InForce(set_ones, settings.thresholds_source, settings.lower, warnings=(warning,))
    thresholds, source = _merged(settings, known)
    embedded = known.evaluator.kind == "embedded"
    return InForce(
        thresholds,
        source,
        thresholds.lower if embedded else settings.lower,
        known.features,
        {str(pair): line for pair, line in known.lines.items()},
    )


def _merged(settings: Settings, known: Calibration) -> tuple[Thresholds, Origin]:
    chosen = {"upper", "lower", "aggregate"} & settings.model_fields_set
    values = {
        name: getattr(settings if name in chosen else known, name) for name in ("upper", "lower", "aggregate")
    }
    if not values["lower"] < values["upper"]:
        raise SettingsError(
            f"with the calibration {settings.calibration}, lower would be {values['lower']:g} and upper "
            f"{values['upper']:g}; set both CRAG_UPPER and CRAG_LOWER, or neither"
        )
    return Thresholds(**values), settings.thresholds_source if chosen else "calibration"
