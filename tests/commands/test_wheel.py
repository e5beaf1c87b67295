"""The wheel works away from the checkout: it holds the graphs, the prompts and the coefficients."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import crag, crag.graphs.crag, crag.graphs.fixed, crag.eval
from crag import Settings, build_graph
from crag.embedded.evaluator import coefficients
from crag.models.prompting import prompt
assert crag.__file__.startswith({home!r}), crag.__file__
assert crag.graphs.crag.__file__.startswith({home!r}), crag.graphs.crag.__file__
build_graph("crag", Settings(_env_file=None))
print(prompt("grade").render("zh", question="问", document="文")[0].content[:4])
print(sorted(coefficients("multilingual-e5-small/x")))
"""


def test_the_wheel_is_complete(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    home = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        wheel.extractall(home)
    assert "crag/py.typed" in names
    assert "crag/prompts/zh/generate.txt" in names
    assert "crag/eval/metrics/chinese.json" in names
    assert {f"crag/eval/reporting/report.{kind}" for kind in ("py", "html", "css", "js")} <= set(names)
    assert not [name for name in names if name.startswith("tests/")]
    # A bare interpreter with the dependencies on its path, but without this environment's editable install.
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True, timeout=60)
    done = subprocess.run(
        [bare / "bin" / "python", "-c", PROGRAM.format(home=str(home))],
        env={"PYTHONPATH": f"{home}:{sysconfig.get_path('purelib')}"},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["你负责判", "['cross', 'same']"]
