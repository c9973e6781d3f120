"""Writes down what one Python process compiles, loads and launches through Triton.

Started by putting this folder at the head of PYTHONPATH, where Python finds it as ``sitecustomize``. Nothing happens until ``triton.knobs``
is imported in a process whose environment names a folder in RLK_PROBE_RECORD. Then one file of JSON lines per process is kept there,
``<pid>-<nonce>.jsonl``, and each binary that is loaded is copied to ``objects/<sha256>.<kind>``, since a path says nothing about bytes.

Events: ``start`` (environment, versions), ``compile`` (specialization data, the only place that holds constant arguments), ``load`` (cache
files with digests), ``launches`` (counts by kernel and whether a graph was being captured, since the last such line), ``canary``, ``step``
(from the exerciser), ``trouble`` (something could not be recorded), ``end`` (libraries that were mapped). A file without ``end`` was cut off.
"""

import atexit
import hashlib
import importlib.util
import json
import os
import sys
import threading
import time

SCHEMA = "rlk-lint/recorder/v1"
FOLDER = os.environ.get("RLK_PROBE_RECORD")
BINARIES = ("hsaco", "cubin")
ENVIRONMENT = (
    "RL_KERNEL_", "VIME_RL_KERNEL_", "TRITON_", "HIP_", "HSA_", "ROCR_", "ROCP_", "ROCPROF", "DEBUG_HIP_", "AMD_", "AMDGCN_", "GPU_",
    "LLVM_PASS_PLUGIN_PATH", "DISABLE_LLVM_OPT", "USE_IR_LOC", "CUDA_VISIBLE_DEVICES", "RANK", "LOCAL_RANK", "WORLD_SIZE", "PYTHONHASHSEED",
)
SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY_ID", "ACCESS", "CREDENTIAL")
LIBRARIES = (
    "libamdhip64", "libhsa-runtime64", "libroctracer64", "librocprofiler", "libhiprtc", "libamd_comgr", "libtriton", "libcuda.", "libcudart",
    "libcupti",
)
FLUSH_SECONDS = 1.0


def _kept(name):
    return name.startswith(ENVIRONMENT) and not any(part in name for part in SECRET)


def _environment():
    return {name: value for name, value in sorted(os.environ.items()) if _kept(name)}


def _environment_at_start():
    """What the process was started with; Python code may have changed ``os.environ`` since."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [pair.split(b"=", 1) for pair in file.read().split(b"\0") if b"=" in pair]
    except OSError:
        return None
    decoded = {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}
    return {name: value for name, value in sorted(decoded.items()) if _kept(name)}


def libraries():
    """Digest of each mapped library that decides what runs, by path; ``None`` where it could not be read."""
    found = {}
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(None, 5)[5].rstrip("\n") for line in file if "/" in line}
    except OSError:
        return None
    for path in sorted(paths):
        if os.path.basename(path).startswith(LIBRARIES):
            try:
                found[path] = _digest(path)
            except OSError:
                found[path] = None
    return found


def _digest(path):
    state = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            state.update(block)
    return state.hexdigest()


def _rank():
    """Rank as torch knows it, else as the launcher set it, else nothing."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except Exception:  # the workload must not fail because of its observer
        return None, None
    rank = os.environ.get("RANK", "")
    world = os.environ.get("WORLD_SIZE", "")
    return (int(rank) if rank.isdigit() else None), (int(world) if world.isdigit() else None)


def _capturing():
    torch = sys.modules.get("torch")
    try:
        return bool(torch is not None and torch.cuda.is_current_stream_capturing())
    except Exception:
        return None


class Recorder:
    def __init__(self, folder):
        self.folder = folder
        self.lock = threading.RLock()
        self.names = {}
        self.pending = {}
        self.flushed = time.monotonic()
        self.canary = None
        self.planted = False
        self.seen = set()
        os.makedirs(os.path.join(folder, "objects"), exist_ok=True)
        self.open()

    def open(self):
        nonce = os.urandom(4).hex()
        self.file = open(os.path.join(self.folder, f"{os.getpid()}-{nonce}.jsonl"), "x", encoding="utf-8")
        modules = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "triton")}
        self.write(
            "start", schema=SCHEMA, pid=os.getpid(), parent=os.getppid(), python=sys.version.split()[0], versions=modules,
            argv=[os.path.basename(sys.argv[0])] if sys.argv else [], environment=_environment(), environment_at_start=_environment_at_start(),
        )

    def write(self, event, **fields):
        with self.lock:
            self.file.write(json.dumps({"event": event, **fields}, default=str) + "\n")
            self.file.flush()

    def trouble(self, where, error):
        try:
            self.write("trouble", where=where, error=repr(error))
        except Exception:
            sys.stderr.write(f"rlk-lint recorder: {where}: {error!r}\n")

    def compiled(self, *, key, repr, fn, compile, is_manual_warmup, already_compiled):
        del key, repr
        try:
            self.write(
                "compile", name=getattr(fn, "name", None), module=getattr(fn, "module", None), specialization=compile.get("specialization_data"),
                warmup=bool(is_manual_warmup), already=bool(already_compiled),
            )
        except Exception as error:
            self.trouble("compile", error)

    def loaded(self, module, function, name, metadata_group, hash):
        del module
        try:
            files, kept = {}, None
            for label, path in sorted(metadata_group.items()):
                path = os.fspath(path)
                kind = path.rsplit(".", 1)[-1]
                with open(path, "rb") as file:
                    data = file.read()
                digest = hashlib.sha256(data).hexdigest()
                files[label] = digest
                if kind in BINARIES:
                    kept = f"objects/{digest}.{kind}"
                    self.keep(kept, data)
            rank, world = _rank()
            self.names[function] = (name, hash)
            self.write("load", name=name, hash=hash, function=function, rank=rank, world=world, files=files, object=kept)
        except Exception as error:
            self.trouble("load", error)

    def keep(self, name, data):
        target = os.path.join(self.folder, name)
        if not os.path.exists(target):
            beside = f"{target}.{os.getpid()}-{os.urandom(4).hex()}.part"
            with open(beside, "xb") as file:
                file.write(data)
            os.replace(beside, target)

    def launched(self, lazy):
        try:
            capturing = _capturing()
            if self.canary and not self.planted and capturing is False:
                # One at the first launch and one at the end: profilers lose the beginning and the end of a run for different reasons.
                self.plant("first launch")
            data = lazy.get()
            key = (data.get("name"), data.get("function"), capturing)
            with self.lock:
                fresh = key not in self.seen
                self.seen.add(key)
                self.pending[key] = self.pending.get(key, 0) + 1
            if fresh or time.monotonic() - self.flushed > FLUSH_SECONDS:
                self.flush()
        except Exception as error:
            self.trouble("launch", error)

    def flush(self):
        with self.lock:
            pending, self.pending = self.pending, {}
            self.flushed = time.monotonic()
            if pending:
                counts = []
                for (name, function, capturing), number in pending.items():
                    known, hash = self.names.get(function, (name, None))
                    counts.append({"name": known, "function": function, "hash": hash, "capturing": capturing, "count": number})
                rank, world = _rank()
                self.write("launches", rank=rank, world=world, counts=counts)

    def plant(self, when):
        """Launches the canary; what it launched is declared only once the device has finished it."""
        eager, nodes, replays = self.canary
        self.planted = True
        try:
            import rlk_probe_canary

            launches = rlk_probe_canary.plant(eager, nodes, replays)
            self.write("canary", when=when, launches=launches, eager=eager, nodes=nodes, replays=replays)
        except Exception as error:
            self.trouble("canary", error)

    def finish_canary(self):
        """The last canary; to be called inside of whatever observes the process."""
        if self.canary and self.planted:
            self.plant("end")
            self.canary = None

    def end(self):
        try:
            self.finish_canary()
            self.flush()
            rank, world = _rank()
            modules = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "triton")}
            torch = sys.modules.get("torch")
            hip = getattr(getattr(torch, "version", None), "hip", None)
            self.write("end", rank=rank, world=world, versions={**modules, "hip": hip}, environment=_environment(), libraries=libraries())
            self.file.close()
        except Exception as error:
            sys.stderr.write(f"rlk-lint recorder: end: {error!r}\n")


_RECORDER = None


def recorder():
    """The recorder of this process, for the exerciser; ``None`` where nothing is recorded."""
    return _RECORDER


def _attach(knobs):
    global _RECORDER
    if _RECORDER is not None:
        return
    instance = _RECORDER = Recorder(FOLDER)
    text = os.environ.get("RLK_PROBE_CANARY", "")
    if text:
        instance.canary = tuple(int(part) for part in text.split(","))
    runtime = knobs.runtime
    before = runtime.jit_post_compile_hook

    def compiled(**fields):
        instance.compiled(**fields)
        return before(**fields) if before is not None else None

    runtime.jit_post_compile_hook = compiled
    runtime.kernel_load_end_hook.add(instance.loaded)
    runtime.launch_enter_hook.add(instance.launched)
    atexit.register(instance.end)

    def forked():
        # The child has a copy of the parent's file; it writes its own.
        instance.pending, instance.seen, instance.lock = {}, set(), threading.RLock()
        instance.open()

    os.register_at_fork(after_in_child=forked)


class _Finder:
    """Lets ``triton.knobs`` load as it would and attaches the recorder to it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        del target
        if name != "triton.knobs":
            return None
        for finder in sys.meta_path:
            spec = None if finder is _Finder else finder.find_spec(name, path)
            if spec is not None and spec.loader is not None:
                execute = spec.loader.exec_module

                def exec_module(module, execute=execute):
                    execute(module)
                    try:
                        _attach(module)
                    except Exception as error:
                        sys.stderr.write(f"rlk-lint recorder: not attached: {error!r}\n")

                spec.loader.exec_module = exec_module
                return spec
        return None


def _other_sitecustomize():
    """Runs the ``sitecustomize`` that this one hides, if there is one."""
    own = os.path.dirname(os.path.abspath(__file__))
    for folder in sys.path:
        path = os.path.join(folder, "sitecustomize.py")
        if os.path.abspath(folder or ".") != own and os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("rlk_probe_other_sitecustomize", path)
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


if FOLDER:
    sys.meta_path.insert(0, _Finder)
if __name__ == "sitecustomize":
    sys.modules.setdefault("rlk_probe_recorder", sys.modules["sitecustomize"])
    _other_sitecustomize()
