"""A Dask scheduler with worker processes on the loopback address, each ended by its id."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from attrs import define, field

from tests.helpers.workers.ends import PATIENCE, environment


@define(eq=False)
class Cluster:
    """A scheduler and its workers, which write what they say to files in a folder."""

    folder: Path
    processes: list["subprocess.Popen[bytes]"] = field(factory=list)
    workers: list["subprocess.Popen[bytes]"] = field(factory=list)

    @property
    def address(self) -> str:
        """Returns HOST:PORT of the scheduler."""
        address = json.loads(self._file.read_text())["address"]
        return str(address).removeprefix("tcp://")

    @property
    def on(self) -> str:
        """Returns what --on takes."""
        return f"dask://{self.address}"

    @property
    def scheduler(self) -> "subprocess.Popen[bytes]":
        """Returns the scheduler's process."""
        return self.processes[0]

    def start(self) -> None:
        """Starts the scheduler, and waits until it has said where it is."""
        self._run("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        end = time.monotonic() + PATIENCE
        while not self._is_known():
            if self.scheduler.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.folder / "dask_scheduler.log").read_text())
            time.sleep(0.05)

    def wait_for_workers(self) -> None:
        """Waits until the scheduler knows all workers that were started."""
        with import_module("distributed").Client(f"tcp://{self.address}", set_as_default=False) as client:
            client.wait_for_workers(len(self.workers), timeout=PATIENCE)

    def add_worker(self) -> None:
        """Starts a worker of one thread."""
        more = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder))
        self.workers.append(self._run("dask_worker", "--host", "127.0.0.1", *more))

    def end(self) -> None:
        """Ends all processes."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    @property
    def _file(self) -> Path:
        return self.folder / "scheduler.json"

    def _is_known(self) -> bool:
        try:
            return bool(self.address)
        except (OSError, ValueError):
            return False

    def _run(self, module: str, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(self._file), *arguments]
        with (self.folder / f"{module}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(), cwd=self.folder)
        self.processes.append(process)
        return process


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Starts a scheduler with so many workers, and ends all of them."""
    started = Cluster(folder)
    try:
        started.start()
        for _ in range(workers):
            started.add_worker()
        yield started
    finally:
        started.end()


def without_log(errors: bytes) -> bytes:
    """Returns what was written on stderr without Dask's own log, which may tell that a worker was lost."""
    return b"".join(line for line in errors.splitlines(keepends=True) if b" - distributed." not in line)
