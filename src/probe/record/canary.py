"""A known number of launches, eager and by graph replay, that a complete observation has to show.

``plant`` gives the number of launches per kernel name. The two kernels do the same and differ in name, so that a profiler that loses
replayed kernels only is told from one that loses all.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rlk_canary_eager(buffer, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(buffer + at, tl.load(buffer + at) + 1)


@triton.jit
def rlk_canary_replay(buffer, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(buffer + at, tl.load(buffer + at) + 1)


def plant(eager, nodes, replays):
    """Launches, waits, and checks by the buffers that the device did what was launched."""
    block = 64
    single = torch.zeros(block, dtype=torch.int32, device="cuda")
    for _ in range(eager):
        rlk_canary_eager[(1,)](single, BLOCK=block)
    repeated = torch.zeros(block, dtype=torch.int32, device="cuda")
    # The binary has to be loaded before the capture; this launch counts.
    rlk_canary_replay[(1,)](repeated, BLOCK=block)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(nodes):
            rlk_canary_replay[(1,)](repeated, BLOCK=block)
    for _ in range(replays):
        graph.replay()
    torch.cuda.synchronize()
    expected = {"rlk_canary_eager": eager, "rlk_canary_replay": 1 + nodes * replays}
    counted = {"rlk_canary_eager": single.unique().tolist(), "rlk_canary_replay": repeated.unique().tolist()}
    if any(counted[name] != [number] for name, number in expected.items()):
        raise RuntimeError(f"the device did not run the canary: launched {expected}, counted {counted}")
    return expected
