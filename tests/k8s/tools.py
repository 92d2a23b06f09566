"""Programs that tools.sh and cluster.sh installed beside this Python environment."""

import subprocess
import sys
from pathlib import Path

# tools.sh's folder has venv/bin/python and bin/.
FOLDER = Path(sys.prefix).parent
DEFINITIONS = FOLDER / "definitions"
ADMISSION = FOLDER / "bin" / "admission"
KUBE_SCORE = FOLDER / "bin" / "kube-score"
ETCD = FOLDER / "bin" / "etcd"
KUBE_APISERVER = FOLDER / "bin" / "kube-apiserver"
PROMTOOL = FOLDER / "bin" / "promtool"
HADOLINT = Path(sys.prefix) / "bin" / "hadolint"


def run(program: Path, *arguments: str, stdin: str = "") -> tuple[int, str]:
    """A program's exit code, and all that it printed."""
    command = [str(program), *arguments]
    ran = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
    return ran.returncode, ran.stdout + ran.stderr
