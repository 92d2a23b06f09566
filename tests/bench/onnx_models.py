"""Writes the ONNX models of the onnxruntime rows from a model directory's safetensors.

The graph is laid out node by node as PyTorch exports BERT, because that is the pattern that
onnxruntime's transformer optimizer knows; pooling and normalisation are part of it, as in
Toolgate's timed part. `python onnx_models.py MODEL_DIR OUTPUT_DIR`
"""

import importlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

numpy: Any = importlib.import_module("numpy")
onnx: Any = importlib.import_module("onnx")
safetensors: Any = importlib.import_module("safetensors.numpy")

OPSET = 17
IR_VERSION = 8
ID_INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
OUTPUT = "sentence_embedding"


class Graph:
    """A graph that grows by one named value at a time."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def op(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Adds a node and names its value."""
        name = output or f"{kind}_{len(self._nodes)}"
        self._nodes.append(onnx.helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: Any) -> str:
        """Adds a tensor of the graph's own."""
        self._constants[name] = value
        return name

    def ints(self, *values: int) -> str:
        """A list of integers."""
        name = "ints_" + "_".join(map(str, values))
        return self.constant(name, numpy.array(values, dtype=numpy.int64))

    def whole(self, value: int) -> str:
        """One integer."""
        return self.constant(f"int_{value}", numpy.array(value, dtype=numpy.int64))

    def real(self, value: float) -> str:
        """One float."""
        return self.constant(f"float_{value}", numpy.array(value, dtype=numpy.float32))

    def weight(self, name: str) -> str:
        """A tensor of the model, as it is."""
        return self.constant(name, self._weights[name])

    def linear(self, value: str, name: str) -> str:
        """A matrix product and its bias."""
        matrix = self.constant(f"{name}.weight.T", self._weights[f"{name}.weight"].T.copy())
        return self.op("Add", self.op("MatMul", value, matrix), self.weight(f"{name}.bias"))

    def layer_norm(self, value: str, name: str, epsilon: float) -> str:
        """A LayerNorm over the last dimension."""
        inputs = [value, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.op("LayerNormalization", *inputs, axis=-1, epsilon=epsilon)

    def model(self, width: int) -> Any:
        """The finished model."""
        helper, kinds = onnx.helper, onnx.TensorProto
        inputs = [
            helper.make_tensor_value_info(name, kinds.INT64, ["batch", "tokens"])
            for name in ID_INPUTS
        ]
        outputs = [helper.make_tensor_value_info(OUTPUT, kinds.FLOAT, ["batch", width])]
        tensors = [onnx.numpy_helper.from_array(v, name) for name, v in self._constants.items()]
        graph = helper.make_graph(self._nodes, "encoder", inputs, outputs, tensors)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


def export(model_dir: Path) -> tuple[Any, dict[str, Any]]:
    """The model as PyTorch would export it, and its configuration."""
    config = json.loads((model_dir / "config.json").read_text(encoding="utf-8"))
    graph = Graph(safetensors.load_file(model_dir / "model.safetensors"))
    hidden = _embeddings(graph, config)
    mask = _additive_mask(graph)
    for number in range(config["num_hidden_layers"]):
        hidden = _layer(graph, hidden, mask, f"encoder.layer.{number}", config)
    _pool(graph, hidden)
    model = graph.model(config["hidden_size"])
    onnx.checker.check_model(model)
    return model, config


def _embeddings(graph: Graph, config: Mapping[str, Any]) -> str:
    length = graph.op("Gather", graph.op("Shape", "input_ids"), graph.whole(1), axis=0)
    ends = graph.op("Unsqueeze", length, graph.ints(0))
    count = config["max_position_embeddings"]
    all_positions = numpy.arange(count, dtype=numpy.int64).reshape(1, count)
    all_positions = graph.constant("position_ids", all_positions)
    positions = graph.op("Slice", all_positions, graph.ints(0), ends, graph.ints(1), graph.ints(1))
    words, kinds, places = (
        graph.op("Gather", graph.weight(f"embeddings.{table}_embeddings.weight"), ids, axis=0)
        for table, ids in [
            ("word", "input_ids"),
            ("token_type", "token_type_ids"),
            ("position", positions),
        ]
    )
    total = graph.op("Add", graph.op("Add", words, kinds), places)
    return graph.layer_norm(total, "embeddings.LayerNorm", config["layer_norm_eps"])


def _additive_mask(graph: Graph) -> str:
    """Nothing for a token, a very large negative number for padding."""
    rows = graph.op("Unsqueeze", "attention_mask", graph.ints(1))
    heads = graph.op("Unsqueeze", rows, graph.ints(2))
    kept = graph.op("Cast", heads, to=onnx.TensorProto.FLOAT)
    padding = graph.op("Sub", graph.real(1.0), kept)
    return graph.op("Mul", padding, graph.real(float(numpy.finfo(numpy.float32).min)))


def _layer(graph: Graph, hidden: str, mask: str, name: str, config: Mapping[str, Any]) -> str:
    epsilon = config["layer_norm_eps"]
    context = _attention(graph, hidden, mask, f"{name}.attention.self", config)
    attended = graph.op("Add", graph.linear(context, f"{name}.attention.output.dense"), hidden)
    attended = graph.layer_norm(attended, f"{name}.attention.output.LayerNorm", epsilon)
    inner = _gelu(graph, graph.linear(attended, f"{name}.intermediate.dense"))
    output = graph.op("Add", graph.linear(inner, f"{name}.output.dense"), attended)
    return graph.layer_norm(output, f"{name}.output.LayerNorm", epsilon)


def _attention(graph: Graph, hidden: str, mask: str, name: str, config: Mapping[str, Any]) -> str:
    width, heads = config["hidden_size"], config["num_attention_heads"]
    split = graph.ints(0, 0, heads, width // heads)

    def projected(part: str, order: Sequence[int]) -> str:
        heads_together = graph.linear(hidden, f"{name}.{part}")
        return graph.op("Transpose", graph.op("Reshape", heads_together, split), perm=order)

    query = projected("query", [0, 2, 1, 3])
    key = projected("key", [0, 2, 3, 1])
    value = projected("value", [0, 2, 1, 3])
    scale = graph.real(math.sqrt(width // heads))
    scores = graph.op("Div", graph.op("MatMul", query, key), scale)
    shares = graph.op("Softmax", graph.op("Add", scores, mask), axis=-1)
    context = graph.op("Transpose", graph.op("MatMul", shares, value), perm=[0, 2, 1, 3])
    return graph.op("Reshape", context, graph.ints(0, 0, width))


def _gelu(graph: Graph, value: str) -> str:
    error = graph.op("Erf", graph.op("Div", value, graph.real(math.sqrt(2.0))))
    product = graph.op("Mul", value, graph.op("Add", error, graph.real(1.0)))
    return graph.op("Mul", product, graph.real(0.5))


def _pool(graph: Graph, hidden: str) -> None:
    """Mean over the tokens, then length 1."""
    column = graph.op("Unsqueeze", "attention_mask", graph.ints(-1))
    kept = graph.op("Cast", column, to=onnx.TensorProto.FLOAT)
    axis = graph.ints(1)
    total = graph.op("ReduceSum", graph.op("Mul", hidden, kept), axis, keepdims=0)
    mean = graph.op("Div", total, graph.op("ReduceSum", kept, axis, keepdims=0))
    length = graph.op("ReduceL2", mean, axes=[1], keepdims=1)
    graph.op("Div", mean, length, output=OUTPUT)


def optimise(source: Path, target: Path, config: Mapping[str, Any]) -> None:
    """Fuses what the transformer optimizer knows, and makes sure that it did.

    Level 0 leaves out the general optimisations, which a session makes anyhow: here they would
    need PyTorch.
    """
    optimizer = importlib.import_module("onnxruntime.transformers.optimizer")
    optimised = optimizer.optimize_model(
        str(source),
        model_type="bert",
        num_heads=config["num_attention_heads"],
        hidden_size=config["hidden_size"],
        opt_level=0,
    )
    fused = optimised.get_fused_operator_statistics()
    layers = config["num_hidden_layers"]
    expected = {
        "EmbedLayerNormalization": 1,
        "Attention": layers,
        "SkipLayerNormalization": 2 * layers,
    }
    lacking = {kind for kind, count in expected.items() if fused[kind] != count}
    if lacking or fused["BiasGelu"] + fused["FastGelu"] != layers:
        sys.exit(f"onnxruntime's optimizer fused less than it could: {fused}")
    optimised.save_model_to_file(str(target))


def quantise(source: Path, target: Path, per_channel: bool) -> None:
    """Dynamic int8: weights now, activations while it runs."""
    quantization = importlib.import_module("onnxruntime.quantization")
    quantization.quantize_dynamic(
        source,
        target,
        per_channel=per_channel,
        weight_type=quantization.QuantType.QInt8,
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )


def main() -> None:
    """Writes all four models."""
    model_dir, output = Path(sys.argv[1]), Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    exported = output / "exported.onnx"
    model, config = export(model_dir)
    onnx.save(model, exported)
    optimise(exported, output / "fp32.onnx", config)
    quantise(output / "fp32.onnx", output / "int8-per-channel.onnx", per_channel=True)
    quantise(output / "fp32.onnx", output / "int8-per-tensor.onnx", per_channel=False)


if __name__ == "__main__":
    main()
