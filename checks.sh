#!/usr/bin/env bash
# Every check there is: `make test` and CI run this. BIN is the environment's folder of commands.
set -euo pipefail
cd "$(dirname "$0")"
BIN=${BIN:-.venv/bin}
# No key, no setting and no proxy of the machine reaches a test.
while IFS='=' read -r name _; do unset "$name"; done < <(env | grep -E '^(CRAG_|OPENAI_|TAVILY_|LANGSMITH_|LANGCHAIN_)' || true)

echo "== format and lint";   "$BIN/ruff" format --check .; "$BIN/ruff" check .
echo "== types";             "$BIN/mypy"
echo "== direction";         "$BIN/lint-imports"
echo "== tests";             "$BIN/python" -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered "$@"
