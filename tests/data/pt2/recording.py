"""What the scripts beside this one end with."""
import torch
from safetensors.torch import save_file
from torch.utils._pytree import tree_leaves


def without_paths(program):
    """The program without the places in the machine's files that its nodes remember."""
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    return program


def record(name, program, calls, run=None):
    """Saves the program as NAME.pt2, and the arguments and results of some calls in NAME.io.safetensors.

    `run` gives the results: a module that the program was made of, or by default the program. A call may hold named arguments at
    its end, in a dict.
    """
    torch.export.save(without_paths(program), f"{name}.pt2")
    run = run or program.module()
    recorded = {}
    for k, call in enumerate(calls):
        recorded |= {f"set{k}.input.{i}": t for i, t in enumerate(tree_leaves(call))}
        named = call[-1] if isinstance(call[-1], dict) else {}
        results = run(*call[: -1 if named else None], **named)
        recorded |= {f"set{k}.output.{i}": torch.as_tensor(t) for i, t in enumerate(tree_leaves(results))}
    save_file({key: t.detach().resolve_conj().contiguous().clone() for key, t in recorded.items()}, f"{name}.io.safetensors")
