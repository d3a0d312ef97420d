"""The encoders as ONNX graphs that serve no more than is needed: pooled vectors of chosen layers, and no layer above.

Rules
- Input `input_ids` and `attention_mask`, (texts, tokens) int64; output `layer_N`, (texts, width) float32: the mean over
  a text's tokens of what layer N gives. Layers are counted from 1. The heads found more in the inner layers than in the
  last, which was trained to tell topics apart.
- e5's matrices are int8 with a scale a column, made of the 4 bits that its package holds. Activations are quantised a
  token at a time, not a batch at a time as onnxruntime's own dynamic quantisation does: so a text's score does not
  depend on the texts that it is judged with. Weights use 7 of the 8 bits (-63 to 63): two products of an unsigned and a
  signed byte then fit into the 16 bits in which processors without VNNI add them up.
- e5's word vectors stay 4-bit, and are unpacked for the tokens at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from moderation_heavy.weights import BLOCK, E5

OPSET = 18
MINILM_LAYERS = 6


class _Graph:
    """Nodes and constants in the making; a node's output carries the node's name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self._quantised: dict[str, tuple[str, str]] = {}

    def constant(self, name: str, value: NDArray[np.generic] | np.generic) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name)
        return name

    def add(self, kind: str, inputs: Sequence[str], name: str = "", domain: str = "", **attributes: Any) -> str:
        output = name or f"{kind}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def pooled(self, hidden: str, name: str) -> str:
        """The mean over a text's own tokens."""
        mask = self._mask()
        axis = self.constant("axis_tokens", np.array([1], np.int64))
        summed = self.add("ReduceSum", [self.add("Mul", [hidden, mask]), axis], keepdims=0)
        return self.add("Div", [summed, self.add("ReduceSum", [mask, axis], keepdims=0)], name=name)

    def product(self, x: str, name: str, matrix: NDArray[np.float32]) -> str:
        """`x` (…, columns) times the transpose of `matrix` (rows, columns), in integers."""
        scales = np.maximum(np.abs(matrix).max(axis=1), 1e-12) / 63
        weights = np.round(matrix.T / scales).astype(np.int8)
        numbers, x_scales = self._tokenwise(x)
        whole = self.add(
            "MatMulInteger",
            [numbers, self.constant(name, weights), self.constant("zero_point", np.uint8(128))],
        )
        scaled = self.add("Mul", [self.add("Cast", [whole], to=TensorProto.FLOAT), x_scales])
        return self.add("Mul", [scaled, self.constant(f"{name}.scales", scales.astype(np.float32))])

    def _tokenwise(self, x: str) -> tuple[str, str]:
        if x not in self._quantised:
            last = self.constant("axis_last", np.array([-1], np.int64))
            widest = self.add("ReduceMax", [self.add("Abs", [x]), last], keepdims=1)
            step = self.add("Mul", [widest, self.constant("1/127", np.float32(1 / 127))])
            scales = self.add("Max", [step, self.constant("least", np.float32(1e-12))])
            rounded = self.add("Round", [self.add("Div", [x, scales])])
            shifted = self.add("Add", [rounded, self.constant("128", np.float32(128))])
            self._quantised[x] = self.add("Cast", [shifted], to=TensorProto.UINT8), scales
        return self._quantised[x]

    def _mask(self) -> str:
        known = {node.name for node in self.nodes}
        if "token_mask" not in known:
            numbers = self.add("Cast", ["attention_mask"], to=TensorProto.FLOAT)
            self.add("Unsqueeze", [numbers, self.constant("axis_width", np.array([2], np.int64))], name="token_mask")
        return "token_mask"


def e5(weights: E5, layers: Sequence[int]) -> bytes:
    """Return the ONNX file of multilingual-e5-small up to the highest of `layers`."""
    graph = _Graph()
    x = _embedded(graph, weights)
    mask = graph.add("Cast", ["attention_mask"], to=TensorProto.INT32)
    for layer in range(max(layers)):
        x = _layer(graph, weights, x, mask, f"l{layer}.")
        if layer + 1 in layers:
            graph.pooled(x, f"layer_{layer + 1}")
    return _model("multilingual-e5-small", OPSET, graph, layers, weights.width)


def minilm(content: bytes, layers: Sequence[int]) -> bytes:
    """Return MiniLM's ONNX file with the pooled `layers` for outputs, and without what they do not need."""
    model = onnx.load_from_string(content)
    source, opset = model.graph, next(entry.version for entry in model.opset_import if not entry.domain)
    # Two normalisations a layer after the embeddings' own; each layer ends with its second.
    ends = [node.output[0] for node in source.node if node.op_type == "LayerNormalization"][2::2]
    if len(ends) != MINILM_LAYERS:
        raise ValueError(f"MiniLM's graph has {len(ends)} layers, not {MINILM_LAYERS}")
    makers = {output: node for node in source.node for output in node.output}
    wanted, needed = [ends[layer - 1] for layer in layers], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in needed:
            needed.add(name)
            wanted += makers[name].input if name in makers else ()
    graph = _Graph()
    graph.nodes = [node for node in source.node if needed & set(node.output)]
    graph.constants = {constant.name: constant for constant in source.initializer if constant.name in needed}
    for layer in layers:
        graph.pooled(ends[layer - 1], f"layer_{layer}")
    return _model("all-MiniLM-L6-v2", opset, graph, layers, 384, "token_type_ids")


def _embedded(graph: _Graph, weights: E5) -> str:
    """Word, position and type vectors, added and normalised."""
    width, blocks = weights.width, weights.width // BLOCK
    words = weights.packed("emb.word", width)
    halves = graph.add("Gather", [graph.constant("words", words.halves.reshape(-1, width // 2)), "input_ids"])
    split = graph.constant("shape_blocks", np.array([0, 0, blocks, BLOCK // 2], np.int64))
    both = graph.add("Reshape", [graph.add("Cast", [halves], to=TensorProto.FLOAT), split])
    high = graph.add("Floor", [graph.add("Mul", [both, graph.constant("1/16", np.float32(1 / 16))])])
    low = graph.add("Sub", [both, graph.add("Mul", [high, graph.constant("16", np.float32(16))])])
    values = graph.add("Sub", [graph.add("Concat", [low, high], axis=3), graph.constant("8", np.float32(8))])
    scales = graph.add("Gather", [graph.constant("words.scales", words.scales), "input_ids"])
    wide = graph.add("Unsqueeze", [scales, graph.constant("axis_block", np.array([3], np.int64))])
    joined = graph.constant("shape_width", np.array([0, 0, width], np.int64))
    x = graph.add("Reshape", [graph.add("Mul", [values, wide]), joined])
    # Every token is of type 0, whose vector therefore goes into the positions'.
    positions = weights.floats("emb.pos").reshape(-1, width) + weights.floats("emb.type")[:width]
    first, tokens = graph.constant("first", np.array([0], np.int64)), graph.add("Shape", ["input_ids"], start=1, end=2)
    places = graph.add("Slice", [graph.constant("positions", positions), first, tokens, first])
    return _normalised(graph, weights, graph.add("Add", [x, places]), "emb.ln")


def _layer(graph: _Graph, weights: E5, x: str, mask: str, name: str) -> str:
    """One layer of BERT: attention, then two products with a GELU between, each added to its input and normalised."""
    width, inner = weights.width, weights.inner
    parts = graph.add("Add", [
        graph.product(x, f"{name}qkv", np.concatenate([weights.packed(f"{name}{p}.w", width).dense() for p in "qkv"])),
        graph.constant(f"{name}qkv.bias", np.concatenate([weights.floats(f"{name}{p}.b") for p in "qkv"])),
    ])  # fmt: skip
    query, key, value = (f"{name}{part}" for part in ("query", "key", "value"))
    graph.nodes.append(
        helper.make_node("Split", [parts], [query, key, value], name=f"{name}split", axis=2, num_outputs=3)
    )
    mixed = graph.add(
        "MultiHeadAttention", [query, key, value, "", mask], domain="com.microsoft", num_heads=weights.heads
    )
    attended = graph.add("Add", [x, _linear(graph, weights, mixed, f"{name}ao", width)])
    x = _normalised(graph, weights, attended, f"{name}aln")
    spread = graph.add("Gelu", [_linear(graph, weights, x, f"{name}fi", width)], domain="com.microsoft")
    return _normalised(
        graph, weights, graph.add("Add", [x, _linear(graph, weights, spread, f"{name}fo", inner)]), f"{name}oln"
    )


def _linear(graph: _Graph, weights: E5, x: str, name: str, columns: int) -> str:
    matrix = weights.packed(f"{name}.w", columns).dense()
    return graph.add(
        "Add", [graph.product(x, f"{name}.w", matrix), graph.constant(f"{name}.b", weights.floats(f"{name}.b"))]
    )


def _normalised(graph: _Graph, weights: E5, x: str, name: str) -> str:
    gain, bias = (graph.constant(f"{name}.{part}", weights.floats(f"{name}.{part}")) for part in "wb")
    return graph.add("LayerNormalization", [x, gain, bias], axis=-1, epsilon=weights.epsilon)


def _model(name: str, opset: int, graph: _Graph, layers: Sequence[int], width: int, *more_inputs: str) -> bytes:
    inputs = ("input_ids", "attention_mask", *more_inputs)
    proto = helper.make_graph(
        graph.nodes,
        name,
        [helper.make_tensor_value_info(i, TensorProto.INT64, ["texts", "tokens"]) for i in inputs],
        [helper.make_tensor_value_info(f"layer_{i}", TensorProto.FLOAT, ["texts", width]) for i in sorted(layers)],
        list(graph.constants.values()),
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(proto, opset_imports=opsets, ir_version=9, producer_name="moderation-heavy")
    content: bytes = model.SerializeToString(deterministic=True)
    return content
