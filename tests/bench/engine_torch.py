"""The sentence-transformers rows, as measuring.py runs them."""

import argparse
import importlib
from pathlib import Path
from typing import Any

import measuring

torch: Any = importlib.import_module("torch")


class SentenceTransformers:
    """The reference implementation, from its token ids to the embedding."""

    def __init__(self, model_dir: Path, arguments: argparse.Namespace) -> None:
        package: Any = importlib.import_module("sentence_transformers")
        torch.set_num_threads(arguments.threads)
        # Asked in every call; a wheel without CUDA knows at once, one with CUDA asks its libraries.
        torch.cuda.is_current_stream_capturing = lambda: False
        self._model = package.SentenceTransformer(str(model_dir), device="cpu")
        self._model = self._model.to(getattr(torch, arguments.format)).eval()
        self.name = f"sentence-transformers {package.__version__}, PyTorch {torch.__version__}"

    def prepare(self, ids: Any, mask: Any) -> Any:
        """Returns the inputs as the model's own tokenizer gives them."""
        kinds = torch.zeros(ids.shape, dtype=torch.int64)
        ids, mask = torch.from_numpy(ids), torch.from_numpy(mask)
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}

    def embed(self, batch: Any) -> Any:
        """All modules in turn; they add to the batch, which is used again."""
        with torch.inference_mode():
            return self._model(dict(batch))["sentence_embedding"].float().numpy()


if __name__ == "__main__":
    measuring.run(SentenceTransformers)
