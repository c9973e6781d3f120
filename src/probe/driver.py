"""Compiles kernels through Triton's own launch path, on a machine without a GPU.

Started by `rlk-lint probe compile` in a private folder. Orders come in on the standard input as JSON, one per line, and one answer to each goes out on
the standard output; what the sources print goes to the standard error instead. A launch of the kernel module is stopped after the compilation, so that what is compiled is
specialised as a real launch would be; nothing is run on a device.
"""

import importlib
import json
import os
import sys
import traceback
import types

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def answer(**fields):
    answers.write(json.dumps(fields, sort_keys=True) + "\n")
    answers.flush()


class dtype:
    """A dtype as Triton takes it from torch: it looks at the class's name, its module and the text."""

    __module__ = "torch"

    def __init__(self, name, size):
        self.name, self.itemsize = name, size

    def __repr__(self):
        return "torch." + self.name


class Tensor:
    """A tensor without storage: shape, strides and dtype, which is all that specialisation looks at."""

    device = "cuda:0"
    is_cuda = True

    def __init__(self, shape, dtype, strides=None):
        self.shape, self.dtype = tuple(int(size) for size in shape), dtype
        if strides is None:
            strides, step = [], 1
            for size in reversed(self.shape):
                strides.insert(0, step)
                step *= size
        self.strides = tuple(strides)

    ndim = property(lambda self: len(self.shape))

    def size(self, at=None):
        return self.shape if at is None else self.shape[at]

    def stride(self, at=None):
        return self.strides if at is None else self.strides[at]

    def dim(self):
        return len(self.shape)

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def element_size(self):
        return self.dtype.itemsize

    def is_contiguous(self):
        return self.strides == Tensor(self.shape, self.dtype).strides

    def contiguous(self):
        return Tensor(self.shape, self.dtype)

    def t(self):
        return Tensor(self.shape[::-1], self.dtype, self.strides[::-1])

    def data_ptr(self):
        return 0

    def ptr_range(self):
        """Bytes from the first element to the last, by which Triton decides whether offsets fit into 32 bits."""
        last = sum((size - 1) * step for size, step in zip(self.shape, self.strides))
        return (last + 1) * self.dtype.itemsize


Tensor.__module__ = "torch"


def stand_in_for_torch():
    """A module that can be imported as torch. What it lacks is an error that names it, never a guess."""
    torch = types.ModuleType("torch")
    torch.__path__ = []
    torch.Tensor, torch.dtype = Tensor, dtype
    for name, size in [("bfloat16", 2), ("float16", 2), ("float32", 4), ("float64", 8), ("int8", 1), ("int32", 4), ("int64", 8), ("bool", 1), ("uint8", 1)]:
        setattr(torch, name, dtype(name, size))
    flat = lambda shape: shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    torch.empty = torch.zeros = lambda *shape, dtype=torch.float32, device=None, **_: Tensor(flat(shape), dtype)
    torch.empty_like = lambda tensor, **_: Tensor(tensor.shape, tensor.dtype)
    torch.is_grad_enabled = lambda: False

    def part(name, **members):
        module = types.ModuleType("torch." + name)
        module.__dict__.update(members)
        setattr(torch, name, module)
        sys.modules["torch." + name] = module

    identity = lambda *args, **_: args[0] if args and callable(args[0]) else (lambda function: function)
    torch.no_grad = torch.inference_mode = identity
    part("cuda", is_available=lambda: True, is_current_stream_capturing=lambda: False, current_device=lambda: 0)
    part("version", hip="0", cuda=None)
    part("autograd", Function=type("Function", (), {"__module__": "torch.autograd"}))
    part("nn", Module=type("Module", (), {"__module__": "torch.nn"}))
    sys.modules["torch"] = torch
    return torch


class StubDriver:
    """A driver with a target and no device."""

    def __init__(self, target):
        self.target = target

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def set_current_device(self, device):
        pass

    def get_current_stream(self, device=None):
        return 0

    def is_active(self):
        return True


def import_kernels(order):
    """Imports the kernel module under its own name. Its parent packages are bare: their code is not run."""
    sys.path[:0] = order["roots"]
    parts = order["module"].split(".")
    for end in range(1, len(parts)):
        name = ".".join(parts[:end])
        package = types.ModuleType(name)
        folders = [os.path.join(root, *parts[:end]) for root in order["roots"]]
        package.__path__ = [folder for folder in folders if os.path.isdir(folder)]
        sys.modules[name] = package
    return importlib.import_module(order["module"])


class Session:
    def __init__(self, order):
        self.order = order
        self.torch = stand_in_for_torch()
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.runtime import driver
        from triton.runtime.jit import JITFunction

        self.triton = triton
        driver.set_active(StubDriver(GPUTarget("hip", order["arch"], order["wavefront"])))
        self.kernels = []
        self.specialisations = {}
        self.latest = None
        compile_only = self
        run = JITFunction.run

        def stop_after_compiling(function, *args, grid, warmup, **options):
            compile_only.latest = None
            kernel = run(function, *args, grid=grid, warmup=True, **options)
            compile_only.note(function, kernel)
            return kernel

        JITFunction.run = stop_after_compiling
        triton.knobs.runtime.jit_post_compile_hook = self.compiled
        self.module = import_kernels(order)

    def compiled(self, **event):
        self.latest = event["compile"]["specialization_data"]

    def note(self, function, kernel):
        if self.latest is not None:
            self.specialisations[kernel.hash] = self.latest
        self.kernels.append({"kernel": function.fn.__qualname__, "hash": kernel.hash, "specialisation": self.specialisations.get(kernel.hash)})

    def describe(self, order):
        """What there is to compile: the instances of the configuration class that the module holds, with the line of each."""
        found = []
        kind = getattr(self.module, order["config"], None)
        if not isinstance(kind, type):
            raise LookupError(f"{order['module']} has no class {order['config']}")
        if not callable(getattr(self.module, order["launch"], None)):
            raise LookupError(f"{order['module']} has no function {order['launch']}")
        for name, value in vars(self.module).items():
            members = value if isinstance(value, (tuple, list)) else value.values() if isinstance(value, dict) else [value]
            for at, member in enumerate(members):
                if isinstance(member, kind):
                    found.append({"name": name if member is value else f"{name}[{at}]", "attribute": name, "at": at, "text": repr(member)})
        unique = {}
        for row in found:
            unique.setdefault(row["text"], row)
        base = os.path.dirname(self.triton.__file__)
        native = os.path.join(base, "_C", "libtriton.so")
        return {"triton": self.triton.__version__, "triton_folder": base, "native": native, "configs": list(unique.values())}

    def config(self, row):
        value = getattr(self.module, row["attribute"])
        members = list(value) if isinstance(value, (tuple, list)) else list(value.values()) if isinstance(value, dict) else [value]
        return members[row["at"]]

    def launch(self, order):
        m, n, k = order["m"], order["n"], order["k"]
        a = Tensor((m, k), self.torch.bfloat16)
        b = Tensor((n, k), self.torch.bfloat16).t() if order["layout"] == "nk" else Tensor((k, n), self.torch.bfloat16)
        self.kernels = []
        getattr(self.module, self.order["launch"])(a, b, config=self.config(order["config"]), **order["arguments"])
        return {"kernels": self.kernels}

    def replay(self, order):
        """Compiles what another process recorded, without the launch that it came from."""
        record = json.loads(order["specialisation"])
        function = getattr(self.module, order["kernel"])
        self.kernels = []
        self.latest = order["specialisation"]
        kernel = function.preload(json.dumps(record))
        self.note(function, kernel)
        return {"kernels": self.kernels}


def main():
    session = None
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["do"] == "start":
                session = Session(order)
                answer(do="start", **session.describe(order))
            else:
                answer(do=order["do"], **getattr(session, order["do"])(order))
        except BaseException as error:  # an answer is owed, whatever happens
            where = traceback.extract_tb(error.__traceback__)
            lines = [f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in where]
            answer(do=order["do"], error=type(error).__name__, message=str(error)[:2000], module=getattr(error, "name", None), at=lines[-1:])


main()
