"""What is measured of an answer: by a judging model, or by comparing it with what is known.

The only place that knows ragas, which is imported at the first score and never before.
"""

from .catalogue import judge_calls, metrics
from .judge import Judge, unjudged
from .local import local_scores

__all__ = ["Judge", "judge_calls", "local_scores", "metrics", "unjudged"]
