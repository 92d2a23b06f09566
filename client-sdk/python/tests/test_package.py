"""What importing the package brings along."""

import subprocess
import sys

HEAVY = ("anthropic", "google.genai", "langchain", "langchain_core", "openai", "pydantic")


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_the_core_loads_no_vendors_package() -> None:
    loaded = run(f"import sys, toolgate; print([m for m in {HEAVY} if m in sys.modules])")
    assert loaded == "[]"


def test_without_the_extra_the_middleware_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['langchain'] = None\n"
        "try: import toolgate.langchain\n"
        "except ImportError as error: print(error)"
    )
    assert "pip install 'toolgate[langchain]'" in run(code)
