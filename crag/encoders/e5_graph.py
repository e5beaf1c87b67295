"""multilingual-e5-small as an onnxruntime session, made in memory from its 4-bit weights in half a second.

The linear layers become 7-bit integers in 8: with them, unlike with full 8-bit ones, no processor's 16-bit
sums overflow, and the cosine to unquantised inference stays the same (.997 on average, lost to the rounding
of activations). Activations are rounded by the range of the text they belong to, so a text is encoded alone
and its vector does not depend on its neighbours in a batch.
"""

from typing import Any

import numpy as np

from crag.encoders.e5_weights import BLOCK, Array, Weights

LAYERS, WIDTH, HEADS, VOCABULARY = 12, 384, 12, 250037


def build_session(weights: Weights) -> Any:
    """An onnxruntime session: `input_ids` (1, tokens) int64 → `embedding` (1, 384) float32 of unit length.

    It runs in the calling thread, and in several at once.
    """
    import onnxruntime

    graph = _Graph()
    embedding = _encoder(graph, weights)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in graph.large.values()]
    options.add_external_initializers(list(graph.large), values)
    model = graph.model(embedding)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class _Graph:
    """Collects nodes and constants of an ONNX graph; large constants stay numpy arrays of ours."""

    def __init__(self) -> None:
        import onnx

        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self.large: dict[str, Array] = {}
        self.float32 = onnx.TensorProto.FLOAT

    def constant(self, array: Array) -> str:
        name = f"c{len(self._constants)}"
        array = np.ascontiguousarray(array)
        if array.nbytes < 4096:
            self._constants[name] = self._onnx.numpy_helper.from_array(array, name)
            return name
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = self._onnx.TensorProto(name=name, data_type=kind, dims=array.shape)
        tensor.data_location = self._onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="memory")
        self._constants[name] = tensor
        self.large[name] = array
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, operator: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        names = [f"n{len(self._nodes)}_{i}" for i in range(outputs)]
        self._nodes.append(
            self._onnx.helper.make_node(operator, list(inputs), names, domain=domain, **attributes)
        )
        return names[0] if outputs == 1 else names

    def model(self, output: str) -> bytes:
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        graph = helper.make_graph(
            self._nodes,
            "e5",
            [helper.make_tensor_value_info("input_ids", kinds.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info(output, kinds.FLOAT, [1, WIDTH])],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        built: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
        return built


def _encoder(graph: _Graph, weights: Weights) -> str:
    """BERT with absolute positions, mean of the last layer's tokens, unit length."""
    head = WIDTH // HEADS
    split, joined = graph.integers(0, 0, HEADS, head), graph.integers(0, 0, WIDTH)
    thirds = graph.integers(WIDTH, WIDTH, WIDTH)

    def norm(x: str, name: str) -> str:
        scale, bias = graph.constant(weights.floats(f"{name}.w")), graph.constant(weights.floats(f"{name}.b"))
        out: str = graph.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=weights.epsilon)
        return out

    def linear(x: str, *names: str, first: float = 1.0) -> str:
        matrices = [_matrix(weights, name) for name in names]
        biases = [weights.floats(f"{name}.b") for name in names]
        matrices[0], biases[0] = matrices[0] * np.float32(first), biases[0] * np.float32(first)
        matrix = np.concatenate(matrices)
        scale = np.abs(matrix).max(axis=1) / np.float32(63)
        quantized = np.rint(matrix / scale[:, None]).astype(np.int8).T
        inputs = [quantized, scale, np.zeros(len(scale), np.int8), np.concatenate(biases)]
        out: str = graph.node(
            "DynamicQuantizeMatMul", x, *map(graph.constant, inputs), domain="com.microsoft"
        )
        return out

    def heads(x: str, *order: int) -> str:
        out: str = graph.node("Transpose", graph.node("Reshape", x, split), perm=order)
        return out

    x = norm(_embedded_tokens(graph, weights), "emb.ln")
    for layer in range(LAYERS):
        p = f"l{layer}."
        qkv = linear(x, p + "q", p + "k", p + "v", first=head**-0.5)
        q, k, v = graph.node("Split", qkv, thirds, outputs=3, axis=-1)
        attention = graph.node(
            "Softmax", graph.node("MatMul", heads(q, 0, 2, 1, 3), heads(k, 0, 2, 3, 1)), axis=-1
        )
        mixed = graph.node(
            "Transpose", graph.node("MatMul", attention, heads(v, 0, 2, 1, 3)), perm=[0, 2, 1, 3]
        )
        x = norm(graph.node("Add", x, linear(graph.node("Reshape", mixed, joined), p + "ao")), p + "aln")
        inner = graph.node("Gelu", linear(x, p + "fi"))
        x = norm(graph.node("Add", x, linear(inner, p + "fo")), p + "oln")
    axis = graph.integers(1)
    mean = graph.node("ReduceMean", x, axis, keepdims=0)
    embedding: str = graph.node("Div", mean, graph.node("ReduceL2", mean, axis, keepdims=1))
    return embedding


def _matrix(weights: Weights, name: str) -> Array:
    rows = weights.raw[f"{name}.b"][0]
    return weights.floats(f"{name}.w").reshape(rows, -1)


def _embedded_tokens(graph: _Graph, weights: Weights) -> str:
    """Word plus position vectors. The word table stays packed, two values a byte, until looked up."""
    rows = np.frombuffer(weights.raw["emb.word"][1], np.uint8).reshape(
        VOCABULARY, WIDTH // BLOCK, 2 + BLOCK // 2
    )
    packed = graph.constant(rows[:, :, 2:])
    scales = graph.constant(rows[:, :, :2].copy().view("<f2"))
    positions = weights.floats("emb.pos").reshape(-1, WIDTH) + weights.floats("emb.type")[:WIDTH]
    pairs = graph.node("Gather", packed, "input_ids")
    low = graph.node("BitwiseAnd", pairs, graph.constant(np.array(15, np.uint8)))
    high = graph.node("BitShift", pairs, graph.constant(np.array(4, np.uint8)), direction="RIGHT")
    values = graph.node("Cast", graph.node("Concat", low, high, axis=-1), to=graph.float32)
    centred = graph.node("Sub", values, graph.constant(np.array(8, np.float32)))
    scale = graph.node("Cast", graph.node("Gather", scales, "input_ids"), to=graph.float32)
    word = graph.node("Mul", centred, scale)
    length = graph.node("Gather", graph.node("Shape", "input_ids"), graph.integers(1))
    position = graph.node("Slice", graph.constant(positions), graph.integers(0), length, graph.integers(0))
    tokens: str = graph.node("Add", graph.node("Reshape", word, graph.integers(0, 0, WIDTH)), position)
    return tokens
