"""Drives each route of the plan with its shapes, eager and under graph capture and replay, and says what it drove.

``exercise.py PLAN drive``: the plan (JSON) names in ``module`` the front of the operator family. Every call is a ``step`` event of the
recorder: route, shape, phase and number of calls.

``exercise.py PLAN verify``: compares each candidate configuration byte for byte with the static baseline on sampled inputs and writes
``numbers.json`` into the folder. A process of its own, so that its launches are not taken for those of the routes.

``exercise.py PLAN libraries``: writes ``libraries.json``, the digests of the libraries that such a process maps, by file name. Run before the
workload, it says what the workload may map.
"""

import contextlib
import hashlib
import importlib
import json
import os
import sys

import torch

SAMPLES = ("normal", "signed zeros", "subnormals", "cancellation")


def operands(sample, rows, inner, columns, seed):
    """A pair of BF16 matrices ``[rows, inner]`` and ``[inner, columns]``, made on the CPU so that every machine has the same bytes."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(rows, inner, generator=generator)
    b = torch.randn(inner, columns, generator=generator)
    if sample == "signed zeros":
        a = torch.where(torch.rand(rows, inner, generator=generator) < 0.5, torch.zeros(()), -torch.zeros(()))
    elif sample == "subnormals":
        a = a * 2.0**-130
    elif sample == "cancellation":
        # Large products that cancel pairwise, so that any other order of additions shows.
        half = inner // 2
        a[:, :half] *= 2.0**20
        a[:, half : 2 * half] = -a[:, :half]
        b[half : 2 * half] = b[:half]
    return a.to(torch.bfloat16).cuda(), b.to(torch.bfloat16).cuda()


def call_of(plan, step):
    """What one step of the plan calls, as a function without arguments that gives the ``[m, n]`` output."""
    module = importlib.import_module(plan["module"])
    function = getattr(module, step["function"])
    a, b = operands("normal", step["m"], step["k"], step["n"], seed=plan.get("seed", 0))
    layout = step["layout"]
    if layout == "nk":  # function(a[m, k], weight[n, k])
        b = b.t().contiguous()
    elif layout == "tn":  # a weight gradient: function(input[k, n], gradient[k, m])
        a, b = b, a.t().contiguous()
    elif layout != "kn":  # function(a[m, k], b[k, n])
        raise ValueError(f"the plan's layout {layout!r} is none of nk, kn, tn")
    return lambda: function(a, b)


def drive(plan, recorder):
    replays = plan["replays"]
    for step in plan["steps"]:
        call = call_of(plan, step)
        shape = {name: step[name] for name in ("route", "function", "m", "n", "k")}
        eager = call()
        torch.cuda.synchronize()
        recorder.write("step", phase="eager", calls=1, **shape)
        if not step.get("graph", True):
            continue
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = call()
        recorder.write("step", phase="capture", calls=1, **shape)
        for _ in range(replays):
            graph.replay()
        torch.cuda.synchronize()
        recorder.write("step", phase="replay", calls=replays, **shape)
        same = raw(eager) == raw(captured)
        recorder.write("replayed", same_bytes=same, **shape)


def raw(tensor):
    return tensor.detach().contiguous().cpu().view(torch.uint8).numpy().tobytes()


def different_bytes(one, other):
    if len(one) != len(other):
        return max(len(one), len(other))
    return sum(x != y for x, y in zip(one, other)) if one != other else 0


def verify(plan, folder):
    bits = plan["verify_bits"]
    module = importlib.import_module(bits["module"])
    function, config = getattr(module, bits["function"]), getattr(module, bits["config"])
    rows = []
    for shape in bits["shapes"]:
        m, n, k = shape["m"], shape["n"], shape["k"]
        for seed, sample in enumerate(SAMPLES):
            a, b = operands(sample, m, k, n, seed)
            reference = raw(function(a, b))
            for candidate in bits["candidates"]:
                for split in (False, True) if k > bits["chunk_k"] else (False,):
                    found = raw(function(a, b, config=config(**candidate["fields"]), force_split=split))
                    rows.append({
                        "m": m, "n": n, "k": k, "sample": sample, "candidate": candidate["id"], "split": split, "bytes": len(reference),
                        "reference": hashlib.sha256(reference).hexdigest(), "found": hashlib.sha256(found).hexdigest(),
                        "different_bytes": different_bytes(reference, found),
                    })
    path = os.path.join(folder, "numbers.json")
    with open(path + ".part", "x", encoding="utf-8") as file:
        json.dump({"schema": "rlk-lint/numbers/v1", "samples": rows}, file)
    os.replace(path + ".part", path)


def freeze(plan, folder):
    import rlk_probe_recorder
    import triton
    import triton.language as tl

    @triton.jit
    def nothing(buffer, BLOCK: tl.constexpr):
        tl.store(buffer + tl.arange(0, BLOCK), 0)

    with profiled(plan, None):
        nothing[(1,)](torch.zeros(64, dtype=torch.int32, device="cuda"), BLOCK=64)
        torch.cuda.synchronize()
    mapped = rlk_probe_recorder.libraries()
    if mapped is None:
        raise SystemExit("the mapped libraries cannot be read from /proc/self/maps")
    frozen = {}
    for path, digest in mapped.items():
        name = os.path.basename(path)
        if frozen.setdefault(name, digest) != digest:
            raise SystemExit(f"two libraries with the name {name} and other bytes are mapped; one of them would run unnoticed")
    with open(os.path.join(folder, "libraries.json"), "x", encoding="utf-8") as file:
        json.dump(frozen, file, sort_keys=True)


def profiled(plan, folder):
    """torch.profiler around the run where the plan asks for it, which it does where rocprofv3 is absent."""
    if not plan.get("torch_trace"):
        return contextlib.nullcontext()
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    if folder is None:
        return torch.profiler.profile(activities=kinds)
    path = os.path.join(folder, f"torch-{os.getpid()}.json")
    return torch.profiler.profile(activities=kinds, on_trace_ready=lambda profile: profile.export_chrome_trace(path))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    folder = os.environ.get("RLK_PROBE_FOLDER") or os.environ["RLK_PROBE_RECORD"]
    if sys.argv[2] != "drive":
        {"verify": verify, "libraries": freeze}[sys.argv[2]](plan, folder)
        return
    import triton  # noqa: F401  (attaches the recorder)

    import rlk_probe_recorder

    recorder = rlk_probe_recorder.recorder()
    if recorder is None:
        raise SystemExit("the recorder is not attached: is its folder at the head of PYTHONPATH?")
    with profiled(plan, folder):
        drive(plan, recorder)
        recorder.finish_canary()


if __name__ == "__main__":
    main()
