"""Compiles the companions' kernels with a real Triton, well and in every bad way, and checks that each bad way is found for its own reason.

usage: probe-bad-cases.py RLK_LINT PYTHON
In: the tool, and an interpreter with the Triton that the companions' profile pins. Out: a line per case, and exit code 1 if one is not as expected.
Refused: a case that fails for another reason as well, except where two rules look at the same mistake, which the table below says.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOL, PYTHON = (str(Path(path).absolute()) for path in sys.argv[1:3])
MODULE = "rl_engine/backends/rocm/gemm/mfma_gemm.py"
SHAPE = '[[probe.shape]]\nname = "small"\nm = [8]\nn = 512\nk = 4096\n\n'
WHO = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (("NAME", "x"), ("EMAIL", "x@example.invalid"))}
problems = []


def git(folder, *arguments):
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True, env={**os.environ, **WHO}).stdout.strip()


def tool(*arguments):
    """Exit code and JSON of a probe."""
    ended = subprocess.run([TOOL, "--quiet", "probe", *map(str, arguments), "--format", "json"], capture_output=True, text=True)
    if not ended.stdout:
        sys.exit(f"{arguments} wrote no report: {ended.stderr}")
    return ended.returncode, json.loads(ended.stdout)


def expect(name, answer, code, rules, said=()):
    """`rules` are all rules that may be found; every text of `said` stands in a finding or a gap."""
    found_code, report = answer
    findings, gaps = report["report"]["findings"], report["report"]["gaps"]
    found = sorted({finding["rule"] for finding in findings})
    texts = [finding["message"] for finding in findings] + [gap["cause"] for gap in gaps]
    missing = [text for text in said if not any(text in other for other in texts)]
    good = found_code == code and found == sorted(rules) and not missing
    print(f"{'ok  ' if good else 'BAD '} {name}: exit {found_code}, {' '.join(found) or 'no finding'}, {len(gaps)} gap(s)", flush=True)
    if not good:
        problems.append(name)
        print(f"     expected exit {code}, {rules}, {missing}\n     " + "\n     ".join(sorted(set(texts))[:6]), flush=True)


def counts_are_those_of_the_text(name, work, report):
    """Matrix instructions of each binary for gfx942, counted here in the assembly text beside it."""
    rows, checked = {row["key"]: row["matrix"] for row in report["probe"]["kernels"] if row["processor"] == "gfx942"}, 0
    for text in sorted((work / "cache").glob("*/*.amdgcn")):
        key = json.loads(text.with_suffix(".json").read_text())["hash"]
        counted = {}
        for mnemonic in re.findall(r"^\s+(v_s?mfmac?_\w+)", text.read_text(), re.M):
            counted[mnemonic] = counted.get(mnemonic, 0) + 1
        if key in rows:
            checked += 1
            if rows[key] != counted:
                problems.append(name)
                print(f"BAD  {name}: {text.stem} has {counted} in its text and {rows[key]} in its binary", flush=True)
    if checked != len(rows) or not rows:
        problems.append(name)
        print(f"BAD  {name}: {checked} of {len(rows)} binaries have a text", flush=True)


class Bench:
    """The companions with one shape, and what is compiled from them."""

    def __init__(self, work):
        self.work, self.home = work, work / "demo"
        subprocess.run([TOOL, "--quiet", "demo", "--keep", str(self.home)], stdout=subprocess.DEVNULL, check=False)
        head, *rest = re.split(r"(?m)^(?=\[\[probe\.shape\]\])", (self.home / "rlk-lint.toml").read_text())
        self.text = head + SHAPE + rest[-1][rest[-1].index("[probe.exercise]"):]
        self.profile = self.write("good", self.text)
        self.repository = self.home / "rl-kernel.git"
        self.pin = git(self.repository, "rev-parse", "HEAD")
        self.checkout = work / "checkout"
        git(work, "clone", "--quiet", str(self.repository), str(self.checkout))

    def write(self, name, text):
        path = self.home / f"{name}.toml"
        path.write_text(text)
        return path

    def compile(self, name, profile, *more):
        return tool("compile", "--profile", profile, "--execute-sources", "--python", PYTHON, "--work", self.work / name, *more)

    def changed(self, name, old, new):
        """Compiles the module with one line changed, at a commit and pin of its own."""
        git(self.checkout, "checkout", "--quiet", "--detach", self.pin)
        path = self.checkout / MODULE
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {MODULE}"
        path.write_text(text.replace(old, new))
        git(self.checkout, "commit", "--quiet", "-am", name)
        commit = git(self.checkout, "rev-parse", "HEAD")
        git(self.checkout, "push", "--quiet", "origin", f"{commit}:refs/heads/{name}")
        return self.compile(name, self.write(name, self.text.replace(self.pin, commit)))

    def cache(self, name, *more):
        return tool("cache", self.work / name / "cache", "--profile", self.profile, *more)

    @contextlib.contextmanager
    def spoilt(self):
        """The good cache at its own place, to be spoilt; afterwards it is as it was."""
        place, kept = self.work / "good/cache", self.work / "kept"
        place.rename(kept)
        shutil.copytree(kept, place)
        try:
            yield place, sorted(place.glob("*/_mfma_gemm_kernel.hsaco"))
        finally:
            shutil.rmtree(place)
            kept.rename(place)

    def poisoned(self):
        """Compiles one launch under TRITON_KERNEL_OVERRIDE with a layout that was edited by hand; the cache keeps it under the same key."""
        place = self.work / "poisoned"
        place.mkdir()
        start = {"do": "start", "arch": "gfx942", "wavefront": 64, "roots": [str(self.checkout)], "module": MODULE[:-3].replace("/", "."),
                 "launch": "mfma_gemm", "config": "MfmaGemmConfig"}
        launch = {"do": "launch", "m": 8, "n": 512, "k": 4096, "layout": "nk", "config": {"attribute": "_DECODE", "at": 0}, "arguments": {"force_split": False}}
        git(self.checkout, "checkout", "--quiet", "--detach", self.pin)

        def run(cache, **more):
            environment = {"PATH": os.environ["PATH"], "HOME": str(place), "TRITON_CACHE_DIR": str(cache), **more}
            orders = "".join(json.dumps(order) + "\n" for order in (start, launch))
            ended = subprocess.run([PYTHON, str(self.work / "good/driver.py")], input=orders, env=environment, capture_output=True, text=True, check=True)
            assert '"error"' not in ended.stdout, ended.stdout

        dump = place / "dump"
        run(place / "first", TRITON_KERNEL_DUMP="1", TRITON_DUMP_DIR=str(dump))
        for path in dump.glob("*/*"):
            if path.suffix == ".ttgir":
                path.write_text(path.read_text().replace("kWidth = 8", "kWidth = 4"))
            else:
                path.unlink()
        run(place / "cache", TRITON_KERNEL_OVERRIDE="1", TRITON_OVERRIDE_DIR=str(dump))
        return tool("cache", place / "cache", "--profile", self.profile, "--record", self.work / "good.json")


def main():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder).resolve())
        record = bench.work / "good.json"
        good = bench.compile("good", bench.profile, "--record", record)
        expect("good", good, 0, [])
        counts_are_those_of_the_text("good", bench.work / "good", good[1])
        expect("good, its cache with the record", bench.cache("good", "--record", record), 0, [])

        # With nonkdim 4 there is no matrix layout, and the largest tiles spill.
        changes = [
            ("kpack-1", "KPACK = 2", "KPACK = 1", ["RLK603", "RLK604"], ["kWidth 4 and not 8", "option kpack is 1 and not 2"]),
            ("nonkdim-0", "NONKDIM = 16", "NONKDIM = 0", ["RLK602", "RLK603", "RLK604"], ["v_mfma_f32_32x32x8_bf16", "matrix_instr_nonkdim is 0 and not 16"]),
            ("nonkdim-4", "NONKDIM = 16", "NONKDIM = 4", ["RLK602", "RLK603", "RLK604", "RLK605"], ["no matrix instruction", "matrix_instr_nonkdim is 4 and not 16"]),
            ("nonkdim-32", "NONKDIM = 16", "NONKDIM = 32", ["RLK602", "RLK603", "RLK604"], ["v_mfma_f32_32x32x8_bf16", "matrix_instr_nonkdim is 32 and not 16"]),
            ("block-k-16", "\nBLOCK_K = 64", "\nBLOCK_K = 16", ["RLK604"], ["BLOCK_K"]),
        ]
        for name, old, new, rules, said in changes:
            answer = bench.changed(name, old, new)
            expect(name, answer, 1, rules, said)
            counts_are_those_of_the_text(name, bench.work / name, answer[1])
        arches = [
            ("gfx950", ["RLK601", "RLK602", "RLK603", "RLK604"], ["v_mfma_f32_16x16x32_bf16"]),
            ("gfx90a", ["RLK601", "RLK602"], ["v_mfma_f32_16x16x16bf16_1k"]),
            # Without matrix instructions the largest tiles spill.
            ("gfx1100", ["RLK601", "RLK602", "RLK603", "RLK605"], ["no matrix instruction"]),
        ]
        for arch, rules, said in arches:
            bench.compile(arch, bench.write(arch, bench.text.replace('arch = "gfx942"', f'arch = "{arch}"', 1)), "--record", bench.work / f"{arch}.json")
            answer = bench.cache(arch, "--record", bench.work / f"{arch}.json")
            expect(arch, answer, 1, rules, [f"the code is for {arch}", *said])

        with bench.spoilt() as (_, binaries):
            shutil.copy(binaries[0], binaries[1])
            expect("another kernel's binary of the same name", bench.cache("good", "--record", record), 1, ["RLK608", "RLK609"], ["was recorded for the same key"])
        with bench.spoilt() as (_, binaries):
            other = sorted((bench.work / "kpack-1/cache").glob("*/_mfma_gemm_kernel.hsaco"))
            shutil.copy(other[0], binaries[0])
            expect("binary of another option", bench.cache("good", "--record", record), 1, ["RLK608", "RLK609"], ["was recorded for the same key"])
        expect("poisoned by an override", bench.poisoned(), 1, ["RLK603", "RLK608", "RLK609"], ["the metadata says kpack 2, the ttgir has kWidth 4 and not 8"])
        with bench.spoilt() as (_, binaries):
            binaries[0].with_suffix(".ttgir").unlink()
            expect("missing ttgir", bench.cache("good", "--record", record), 4, ["RLK608"], ["there is no ttgir, and kpack shows nowhere else"])
        with bench.spoilt() as (_, binaries):
            binaries[0].write_bytes(binaries[0].read_bytes()[:2000])
            expect("truncated binary", bench.cache("good", "--record", record), 4, [], ["is no code object"])
        shutil.copytree(bench.work / "good/cache", bench.work / "elsewhere/cache")
        expect("copied from elsewhere", bench.cache("elsewhere", "--record", record), 1, ["RLK608"], ["the cache was copied"])
    print(f"{len(problems)} problem(s)")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
