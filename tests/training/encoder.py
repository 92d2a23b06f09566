"""all-MiniLM-L6-v2 with low-rank additions to its linear layers: texts in, unit vectors out."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import BertModel
from words import Matrix

MAX_TOKENS = 256
CHUNK = 32


class AdaptedLinear(nn.Module):
    """A frozen linear layer plus `scale * B A`, which starts at nothing."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.register_buffer("weight", base.weight.detach().clone())
        self.register_buffer("bias", base.bias.detach().clone())
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=5**0.5)
        self.scale = 1.0
        self.frozen = self.weight
        self.merged: torch.Tensor | None = None

    def merge(self) -> None:
        """Computes one weight for all following texts; `unmerge` before training on."""
        with torch.no_grad():
            self.merged = self.weight + self.scale * (self.lora_B @ self.lora_A)

    def unmerge(self, kept_as: torch.dtype) -> None:
        """Makes the additions trainable, all of them; the frozen weight is converted once."""
        self.merged, self.scale, self.frozen = None, 1.0, self.weight.to(kept_as)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The layer's output, by either way the same."""
        if self.merged is not None:
            return nn.functional.linear(inputs, self.merged, self.bias)
        flat = inputs.reshape(-1, inputs.shape[-1])
        whole = nn.functional.linear(flat, self.frozen, self.bias)
        low = nn.functional.linear(flat, self.lora_A.to(flat.dtype))
        # One pass over the output for product and sum, while training with a scale of 1.
        whole = torch.addmm(whole, low, self.lora_B.T.to(low.dtype), alpha=self.scale)
        return whole.view(*inputs.shape[:-1], -1)


class Encoder:
    """The model on its device, untuned if of rank 0; without additions below layer `first`.

    Embeddings are kept per text until weights change. While training, so is what the lower layers
    make of a text: half the work of a step.
    """

    def __init__(
        self, model_dir: Path, rank: int = 0, first: int = 0, precise: bool = False, seed: int = 1
    ) -> None:
        torch.manual_seed(seed)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.precise = precise
        self.tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        # On CPUs the fused attention of bf16 is the slower one, by far.
        self.model = BertModel.from_pretrained(
            model_dir, add_pooling_layer=False, attn_implementation="eager"
        ).eval()
        self.model.requires_grad_(False)
        self.blocks = list(self.model.encoder.layer)
        self.first = first
        self.layers = dict(adapt(self.model, rank, first)) if rank else {}
        self.model.to(self.device)
        self.known: dict[str, Matrix] = {}
        self.lower: dict[str, torch.Tensor] = {}

    def parameters(self) -> list[nn.Parameter]:
        """Returns the weights that are trained."""
        return [one for layer in self.layers.values() for one in (layer.lora_A, layer.lora_B)]

    def set_scale(self, scale: float) -> None:
        """Sets the weight of the additions: 0 is the untuned model."""
        for layer in self.layers.values():
            layer.scale = scale
            layer.merge()
        self.known.clear()

    def unmerge(self) -> None:
        """Makes the additions trainable again."""
        for layer in self.layers.values():
            layer.unmerge(torch.float32 if self.precise else torch.bfloat16)
        self.known.clear()

    def forward(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit vectors; with gradients, while training."""
        new = [text for text in dict.fromkeys(texts) if text not in self.lower]
        for some in self.by_length(new, self.tokens_in):
            self.lower.update(zip(some, self.lower_states(some), strict=True))
        order = list(self.by_length(texts, lambda text: len(self.lower[text])))
        vectors = torch.cat([self.upper([self.lower[text] for text in some]) for some in order])
        places: dict[str, int] = {text: i for i, text in enumerate(chain(*order))}
        return vectors[[places[text] for text in texts]]

    def by_length(self, texts: Sequence[str], length: Callable[[str], int]) -> Iterator[list[str]]:
        """Texts of like length together, to save padding."""
        ordered = sorted(texts, key=length)
        for at in range(0, len(ordered), CHUNK):
            yield ordered[at : at + CHUNK]

    def tokens_in(self, text: str) -> int:
        """Counts the tokens of a text."""
        return len(self.tokenizer.encode(text or " ").ids)

    def lower_states(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Returns the frozen layers' output for texts, a vector a token."""
        tokens = [self.tokenizer.encode(text or " ").ids for text in texts]
        ids = nn.utils.rnn.pad_sequence([torch.tensor(one) for one in tokens], batch_first=True)
        lengths = [len(one) for one in tokens]
        with torch.no_grad(), self.autocast():
            states = self.model.embeddings(input_ids=ids.to(self.device))
            states = self.through(self.blocks[: self.first], states, self.mask(lengths))
        kept = torch.float32 if self.precise else torch.bfloat16
        return [one[:length].to(kept) for one, length in zip(states, lengths, strict=True)]

    def upper(self, lower: Sequence[torch.Tensor]) -> torch.Tensor:
        """The mean over a text's tokens after all layers, at unit length."""
        mask = self.mask([len(one) for one in lower])
        states = nn.utils.rnn.pad_sequence(list(lower), batch_first=True).float()
        with self.autocast():
            states = self.through(self.blocks[self.first :], states, mask).float()
        weights = mask.unsqueeze(-1).float()
        mean = (states * weights).sum(dim=1) / weights.sum(dim=1)
        return nn.functional.normalize(mean, dim=-1)

    def mask(self, lengths: Sequence[int]) -> torch.Tensor:
        """Returns True for the places that hold tokens."""
        places = torch.arange(max(lengths), device=self.device)
        return places < torch.tensor(lengths, device=self.device)[:, None]

    def through(
        self, blocks: Sequence[nn.Module], states: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Some layers, one after the other."""
        unseen = (~mask)[:, None, None, :] * torch.finfo(torch.bfloat16).min
        for block in blocks:
            states = block(states, unseen)
        return states

    def autocast(self) -> torch.autocast:
        """Products in bf16, unless every digit counts."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=not self.precise)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors, without gradients."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        with torch.no_grad():
            for some in self.by_length(new, self.tokens_in):
                vectors = self.upper(self.lower_states(some)).cpu().numpy()
                self.known.update(zip(some, vectors, strict=True))
        return np.stack([self.known[text] for text in texts])


def adapt(model: nn.Module, rank: int, first: int) -> Iterator[tuple[str, AdaptedLinear]]:
    """Gives each linear layer of the blocks from `first` on its additions; yields their names."""
    for name, module in list(model.named_modules()):
        if not isinstance(module, nn.Linear) or not name.startswith("encoder.layer."):
            continue
        if int(name.split(".")[2]) >= first:
            parent, _, last = name.rpartition(".")
            adapted = AdaptedLinear(module, rank)
            setattr(model.get_submodule(parent), last, adapted)
            yield name, adapted
