"""The project's fuzzer: random inputs for hours, where tests take chosen ones for seconds. See docs/reliability.md.

`python -m tests.fuzz --seconds 120` runs it. `kinds` lists what is fuzzed; each kind is a module. `judging` says what
counts as a failure. `worker` judges many inputs in a process of its own, which `campaign` replaces when it dies.
"""
