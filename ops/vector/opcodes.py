"""The opcodes of elementwise programs, by number. What each does is in `ops.vector.opcode_code`, in this order."""

OPCODES = (
    *(
        "copy",
        "neg",
        "abs",
        "sign",
        "not",
        "exp",
        "log",
        "sqrt",
        "reciprocal",
        "square",
        "cube",
        "floor",
        "ceil",
        "round",
    ),
    *("erf", "tanh", "sigmoid", "relu", "softsign", "softplus", "mish", "gelu", "gelu_tanh", "hard_swish", "is_nan"),
    *("leaky_relu", "thresholded_relu", "swish", "scale", "over", "hard_sigmoid", "shrink", "elu"),
    *("add", "sub", "mul", "div", "max", "min", "prelu"),
    *("equal", "less", "less_or_equal", "greater", "greater_or_equal", "and", "or", "xor"),
    *("where", "clip"),
)
NUMBERS = {name: number for number, name in enumerate(OPCODES)}
