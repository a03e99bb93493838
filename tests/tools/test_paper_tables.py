import json
from pathlib import Path
from typing import Any

import pytest

from allocator.shared_objects import assign
from allocator.solvers import solve
from tests.helpers.allocator.usage_records import NETWORKS, PAPER_RECORDS, Records, paper_example
from tools.paper_facts import DEEPLAB, NAMES, V2, facts
from tools.paper_tables import OBJECTS, main, measure

Capture = pytest.CaptureFixture[str]
PAGE = "".join(
    f"<!-- {name} -->\n\n<!-- end of {name} -->\n" for name in ("objects", "offsets", "differences", "facts")
)


def save(folder: Path, name: str, records: tuple[tuple[int, int, int], ...] = PAPER_RECORDS) -> Path:
    rows = [f"{k},{first},{last},{size}" for k, (first, last, size) in enumerate(records)]
    (folder / f"{name}.csv").write_text("\n".join(("id,first_op,last_op,size_bytes", *rows, "")))
    return folder / f"{name}.csv"


def rows_of(records: Records) -> tuple[tuple[int, int, int], ...]:
    return tuple((k, records.last.get(k, k + 1), size) for k, size in enumerate(records.size))


def save_theirs(folder: Path, name: str, **other: Any) -> None:
    """Writes what TensorFlow Lite's code would give if it were ours, but for `other` totals."""
    problem, data = paper_example(), dict[str, Any](positional_max=[64, 40, 16, 8])
    for strategy, key in [(s, k) for s, k in OBJECTS.items() if k]:
        shared = assign(problem, strategy)
        data[key] = {"total": other.get(strategy, shared.total_bytes), "object_ids": shared.object_of.tolist()}
    data["offsets GREEDY_BY_SIZE"] = {"total": other.get("greedy_by_size", 124)}
    (folder / "golden").mkdir(exist_ok=True)
    (folder / "golden" / f"{name}.json").write_text(json.dumps(data))


def test_totals_that_are_the_same_have_no_star(tmp_path: Path, capsys: Capture) -> None:
    save(tmp_path, "example")
    save_theirs(tmp_path, "example")
    assert main([str(tmp_path), "-q"]) == 0
    shown = capsys.readouterr().out
    assert "*" not in shown
    assert "7 of 7 totals are those of TensorFlow Lite's own code." in shown
    assert [line.split() for line in shown.splitlines() if line.startswith(("naive", "lower"))] == [
        *(["naive", "234", "B"], ["lower", "bound", "128", "B"]),
        *(["naive", "234", "B"], ["lower", "bound", "124", "B"]),
    ]


def test_a_total_that_differs_has_a_star_and_a_reason(tmp_path: Path, capsys: Capture) -> None:
    save(tmp_path, "example")
    save_theirs(tmp_path, "example", shared_min_cost_flow=130, shared_in_order=129, greedy_by_size=125)
    assert main([str(tmp_path), "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines if line.endswith("*")} == {
        *("shared_min_cost_flow", "shared_in_order", "greedy_by_size")
    }
    assert "* example, objects, shared_min_cost_flow: 128 bytes here, 130 there; both flows cost " in "\n".join(lines)
    assert "* example, offsets, greedy_by_size: 124 bytes here, 125 there; not known." in lines


def test_tensors_of_equal_size_may_be_the_reason(tmp_path: Path) -> None:
    file = save(tmp_path, "equal", ((0, 1, 8), (1, 2, 8)))
    (tmp_path / "golden").mkdir()
    theirs = {"positional_max": [8, 8], "objects GREEDY_IN_ORDER": {"total": 17}}
    (tmp_path / "golden" / "equal.json").write_text(json.dumps(theirs))
    (difference,) = measure(file).differences
    assert (difference.ours, difference.theirs) == (16, 17) and "C++'s sort" in difference.reason


def test_json_tells_what_the_tables_show(tmp_path: Path, capsys: Capture) -> None:
    save(tmp_path, "example")
    assert main([str(tmp_path), "--json", "-q"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (network,) = printed["networks"]
    assert (network["name"], network["tensors"], network["compared"], network["differences"]) == ("example", 8, 0, [])
    assert network["objects"]["shared_by_size"] == assign(paper_example(), "shared_by_size").total_bytes
    assert network["offsets"]["greedy_in_order"] == solve(paper_example(), "greedy_in_order").arena_bytes == 160
    assert printed["facts"] == []


def test_facts_are_compared_where_all_networks_are_there(tmp_path: Path, capsys: Capture) -> None:
    ours = {name.lower().replace(" ", "_"): rows_of(records) for name, records in NETWORKS.items()}
    for name in NAMES:
        save(tmp_path, name, ours.get(name, PAPER_RECORDS))
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert main([str(tmp_path), "-q", "--page", str(page)]) == 0
    shown = capsys.readouterr().out
    networks = {name: measure(tmp_path / f"{name}.csv") for name in NAMES}
    checked = {fact.text: fact for fact in facts(networks)}
    assert all(text in shown and text in page.read_text() for text in checked)
    (packed,) = (fact for text, fact in checked.items() if text.startswith(f"on {DEEPLAB} alone"))
    assert packed.measured.startswith("deeplab_v3: 7.1%, 0.0%")
    (counts,) = (fact for text, fact in checked.items() if text.startswith(f"{V2}: 65"))
    assert counts.holds and counts.measured == "65, 26.3 MiB, 6.7 MiB in 4"
    (share,) = (fact for text, fact in checked.items() if "147 MB" in text)
    assert not share.holds and "differs; perhaps because" in shown
    assert facts({name: networks[name] for name in NAMES[1:]}) == []


def test_a_folder_without_records_is_named(tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main([str(tmp_path)])
    assert caught.value.code == 2 and f"{tmp_path} has no records" in capsys.readouterr().err
