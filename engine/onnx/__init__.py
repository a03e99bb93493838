"""ONNX models read into graphs, and plans written into ONNX models.

Reading is one walk, in this order:

1. `load` is the public function. It runs the steps below, and again with other names where lengths must be equal.
2. `file` reads bytes into a message, `wire_format` without the data of large weights; `external_data` maps those.
3. `table` says which converter an operator has, and lists operators that have none; `functions` has those that other
   operators define, `registered` those of the user's own, and `opaque` what is known of those that nobody implements,
   from the caller or from the `declarations` of the model.
4. `inputs` makes a value of each input of the model; `symbols` names the dimensions that are open.
5. `graph_reader` walks over initializers and nodes, in the order and with the names of `scope`. `tensors` makes arrays
   of initializers.
6. `node` is what a converter gets: one node with its operands. `converters` has the converters by family; `bodies`
   reads the graphs inside If, Loop and Scan.
7. `builder` adds operators to the graph, or computes them at once where everything is constant.

`saved` writes a plan into a model and reads it, with the texts of `embedded` and the notes of `annotations`. `seeded`
and `random_weights` give a model weights. `torch_module` has PyTorch write a module as a message. `library` is the only
module that imports the onnx package.
"""
