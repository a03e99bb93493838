"""The door through which only documented errors leave."""

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import engine
import ops
from allocator.errors import ProblemError
from engine import Graph
from engine.text.errors import FeedError, InternalError, KernelError, NoMemoryError
from engine.text.faults import Door, behind_door, name_operator
from ops.elementwise.unary import ABS
from ops.schema.schema import OpSchema, Signature
from ops.tensor.errors import ShapeError
from ops.tensor.spec import Array


@pytest.mark.parametrize(
    "error", [FeedError("x"), ShapeError("x"), ProblemError("x"), OSError("x"), KeyboardInterrupt()]
)
def test_documented_errors_and_interrupts_pass_the_door_as_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, Door("working"):
        raise error
    assert caught.value is error


def test_other_exceptions_become_faults_with_their_cause_and_operator() -> None:
    cause = ZeroDivisionError("division by zero")
    name_operator(cause, "conv_3")
    name_operator(cause, "outer")
    with (
        pytest.raises(
            InternalError, match="planning, at operator 'conv_3': ZeroDivisionError: division by zero"
        ) as caught,
        Door("planning"),
    ):
        raise cause
    assert caught.value.__cause__ is cause
    assert "please report" in str(caught.value)


def test_an_exception_without_a_text_is_told_by_its_name() -> None:
    with pytest.raises(InternalError, match="working: KeyError: KeyError"), Door("working"):
        raise KeyError


def test_memory_that_ran_out_is_no_fault() -> None:
    with pytest.raises(NoMemoryError, match="working: Unable to allocate"), Door("working"):
        np.empty(2**60, np.uint8)


def test_a_call_that_does_not_fit_is_the_fault_of_the_caller() -> None:
    @behind_door("adding")
    def add(a: int, *, b: int = 0) -> int:
        return a + b

    assert add(1, b=2) == 3
    assert add.__name__ == "add"
    with pytest.raises(TypeError, match="unexpected keyword"):
        add(1, c=2)  # type: ignore[call-arg]
    with pytest.raises(InternalError, match="adding: TypeError"):
        add("1")  # type: ignore[arg-type]


def _broken(**fields: Any) -> OpSchema:
    """Returns an operator with a kernel whose fields are broken."""
    return evolve(ABS, name="broken", kernels=(evolve(ABS.kernels[-1], **fields),))


def _temporaries(_: Signature) -> tuple[()]:
    raise ZeroDivisionError("nothing to divide")


def _graph(schema: OpSchema) -> Graph:
    graph = Graph("odd")
    (y,) = graph.add(schema, [graph.input("x", (3,))], name="first")
    graph.output(ops.relu(y), "y")
    return graph


def test_planning_names_the_operator_of_a_fault() -> None:
    graph = _graph(_broken(temporaries=_temporaries))
    for plan in (engine.make_plan, engine.compile):
        with pytest.raises(InternalError, match=r"planning, at operator 'first': ZeroDivisionError: nothing to divide"):
            plan(graph, optimise=0)


def test_running_tells_what_a_feed_raises() -> None:
    class Odd:
        def __dlpack__(self, **_: object) -> None:
            raise KeyError("stream")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    runnable = engine.compile(_graph(ABS), optimise=0)
    with pytest.raises(FeedError, match="input 'x': a Odd is not an array of float32"):
        runnable(x=Odd())
    assert runnable(x=np.array([-1, 0, 2], np.float32))["y"].tolist() == [1, 0, 2]


def test_a_kernel_that_fails_is_told_with_its_operator() -> None:
    def fail(_: object) -> object:
        def thunk() -> None:
            raise KeyError("lost")

        return thunk

    with pytest.raises(KernelError, match="operator 'first' failed"):
        engine.compile(_graph(_broken(bind=fail)), optimise=0)(x=np.ones(3, np.float32))


def test_running_turns_faults_of_the_executor_into_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    runnable = engine.compile(_graph(ABS), optimise=0)

    def run(*_: object) -> dict[str, Array]:
        raise AssertionError("a broken executor")

    monkeypatch.setattr(runnable.executor, "run", run)
    with pytest.raises(InternalError, match="running graph 'odd': AssertionError: a broken executor"):
        runnable(x=np.ones(3, np.float32))
