"""Depth first: what an output needs is done when it is needed, and not before."""

from allocator.ordering.step_graph import StepGraph


def depth_first(graph: StepGraph) -> tuple[int, ...]:
    """Returns a postorder from the writers of what is kept, then from other nodes that nothing waits for.

    Starts stand in the given order. Of what a node waits for, what was added first is done first.
    """
    before, writes = graph.before.lists(), graph.writes.lists()
    ends = [node for node, chunks in enumerate(writes) if any(graph.kept[c] for c in chunks)]
    order: list[int] = []
    seen = [False] * len(graph)
    for end in (*ends, *range(len(graph))):
        stack = [end]
        while stack:
            node = stack.pop()
            if node < 0:
                order.append(~node)
            elif not seen[node]:
                seen[node] = True
                stack.append(~node)
                stack.extend(b for b in reversed(before[node]) if not seen[b])
    return tuple(order)
