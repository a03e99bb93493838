"""Depth first: what an output needs is done when it is needed, and not before."""

from allocator.ordering.step_graph import StepGraph


def depth_first(net: StepGraph) -> tuple[int, ...]:
    """Postorder from the nodes that write what is kept, then from the others nobody waits for; each in the given order.

    Of what a node waits for, what was added first is done first.
    """
    before, writes = net.before.lists(), net.writes.lists()
    ends = [node for node, chunks in enumerate(writes) if any(net.kept[c] for c in chunks)]
    order: list[int] = []
    seen = [False] * len(net)
    for end in (*ends, *range(len(net))):
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
