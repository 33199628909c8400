"""Speed, measured fairly: tinote beside its peers and beside C, in separate processes that take turns.

`python -m benchmarks` prints a table for each case; `python -m benchmarks --help` lists the workloads and options.

| file | what it holds |
|---|---|
| `contract.py` | what a workload declares (`Case`, `Contender`) and what a contender provides (`Subject`) |
| `peers.py` | the peers that a contender may need, one declared table |
| `workers.py` | the child process: builds one subject, then runs slices of it on request |
| `runners.py` | the parent's side of a child: steady cost, first call, import |
| `harness.py` | takes turns, keeps minima, judges right or wrong |
| `report.py` | the table and the JSON |
| `compare.py`, `trees.py`, `verdict.py` | this tree beside another one, judged by paired ratios |
| `workloads.py` | the workloads by name |
| `c_compiler.py` | C at run time, with the system's compiler |
| `ad/` | derivatives by the workloads with which systems of automatic differentiation are compared |
| `gravity/`, `launch/`, `first_call.py`, `import_time.py` | the workloads, each a module with a tuple `CASES` |

A new workload is a module with such a tuple and one line in `workloads.py`. Its contenders are modules with one
function, `create(package, **parameters) -> Subject`. A peer is imported only by the module that contends with it.
"""
