"""The onnxruntime rows, as measuring.py runs them."""

import argparse
import importlib
from pathlib import Path
from typing import Any

import measuring

numpy: Any = importlib.import_module("numpy")


class OnnxRuntime:
    """A session on the CPU."""

    def __init__(self, _: Path, arguments: argparse.Namespace) -> None:
        onnxruntime: Any = importlib.import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        options.inter_op_num_threads = 1
        model = str(arguments.onnx / f"{arguments.format}.onnx")
        self._session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
        self.name = f"onnxruntime {onnxruntime.__version__}"

    def prepare(self, ids: Any, mask: Any) -> Any:
        """Adds the token types that BERT wants."""
        kinds = numpy.zeros_like(ids)
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}

    def embed(self, batch: Any) -> Any:
        """Pooling and normalisation are part of the graph."""
        return self._session.run(None, batch)[0]


if __name__ == "__main__":
    measuring.run(OnnxRuntime)
