"""Runs the example workflow on the built-in companions as a hosted runner would: on the main branch, on a regression, and after its revert.

usage: try-workflow.py RLK_LINT GATE MULTITOOL [--build]
RLK_LINT makes the checkout and is what the action finds in its cache; with --build the action builds it. GATE and MULTITOOL are the SARIF gate script and
the folder of the validator.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from runner import Failed, Job

ROOT = Path(__file__).resolve().parent.parent
WHO = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (("NAME", "x"), ("EMAIL", "x@example.invalid"))}
REGRESSION = '''

def score_or_else(a, b):
    try:
        return det_gemm_linear(a, b)
    except RuntimeError:
        return torch.nn.functional.linear(a, b)


score_or_else(None, None)
'''


def git(folder, *arguments):
    """Runs git; its output."""
    ended = subprocess.run(["git", "-C", str(folder), *arguments], env={**os.environ, **WHO}, check=True, capture_output=True, text=True)
    return ended.stdout.strip()


def seed(work, tool):
    """The companions with their addresses, and a checkout whose profile pins them, as somebody who adopts the tool would have it."""
    made = work / "companions"
    subprocess.run([tool, "demo", "--quiet", "--keep", str(made)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    origin, checkout = work / "origin.git", work / "checkout"
    git(work, "clone", "--quiet", str(made / "rl-kernel.git"), str(checkout))
    git(checkout, "checkout", "--quiet", "-B", "main")
    profile = (made / "rlk-lint.toml").read_text()
    addresses = {}
    parts = re.split(r"(?m)^(?=\[\[source\]\])", profile)
    for at, part in enumerate(parts[1:], 1):
        name = re.search(r'(?m)^id = "(.*)"$', part)[1]
        if "main = true" in part:
            part = re.sub(r'(?m)^commit = .*\n', "", part)
            part = re.sub(r'(?m)^path = "rl-kernel.git"$', 'path = "."', part)
        else:
            address = f"https://github.com/example/{name}"
            addresses[address] = made / f"{name}.git"
            part = re.sub(r'(?m)^path = ".*\.git"$', f'repository = "{address}"', part, count=1)
        parts[at] = part
    (checkout / "rlk-lint.toml").write_text("".join(parts))
    for patch in made.glob("*.patch"):
        shutil.copy(patch, checkout)
    subprocess.run([tool, "init", "--github", str(checkout)], check=True, capture_output=True)
    git(checkout, "add", "-A")
    git(checkout, "commit", "--quiet", "-m", "adopt rlk-lint")
    git(work, "clone", "--quiet", "--bare", str(checkout), str(origin))
    git(checkout, "remote", "set-url", "origin", str(origin))
    return checkout, origin, addresses


def main():
    tool, gate, multitool = (str(Path(argument).resolve()) for argument in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        checkout, origin, addresses = seed(work, tool)
        settings = [(f"url.file://{path}.insteadOf", address) for address, path in addresses.items()]
        settings.append(("safe.directory", "*"))
        keep = ("PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN")
        variables = {key: os.environ[key] for key in keep if key in os.environ}
        # The addresses are https; what they lead to here is not.
        variables.update(GIT_ALLOW_PROTOCOL="file", GIT_CONFIG_COUNT=str(len(settings)), CARGO_TARGET_DIR=str(ROOT / "target"))
        for at, (key, value) in enumerate(settings):
            variables[f"GIT_CONFIG_KEY_{at}"], variables[f"GIT_CONFIG_VALUE_{at}"] = key, value
        caches = {}
        if "--build" not in sys.argv:
            caches["any"] = work / "bin"
            caches["any"].mkdir()
            shutil.copy(tool, caches["any"] / "rlk-lint")

        def run(name, event):
            workflow = yaml.safe_load((checkout / ".github/workflows/rlk-lint.yml").read_text())
            job = Job(work / name, ROOT, origin, event, caches, variables)
            try:
                job.run(workflow)
            except Failed as error:
                print(f"{name}: {error}")
            for log in job.uploads:
                subprocess.run([sys.executable, gate, multitool, str(log)], check=True)
            print(f"{name}: {'failed' if job.failed else 'passed'}, {len(job.uploads)} log(s) uploaded, all pass the gate")
            return job

        def expect(job, failed, uploads):
            if job.failed != failed or len(job.uploads) != uploads:
                sys.exit(f"expected {failed} and {uploads} upload(s), got {job.failed} and {len(job.uploads)}\n{job.log}")

        def push():
            return {"event_name": "push", "ref": "refs/heads/main", "workflow": "rlk-lint", "sha": git(checkout, "rev-parse", "main"), "event": {}}

        def pull(branch, fork=False):
            """The merge commit that a pull request is checked at."""
            git(checkout, "checkout", "--quiet", "--detach", "main")
            git(checkout, "merge", "--quiet", "--no-ff", "-m", f"merge {branch}", branch)
            sha = git(checkout, "rev-parse", "HEAD")
            git(checkout, "push", "--quiet", "--force", "origin", f"HEAD:refs/pull/1/merge", branch, "main")
            subprocess.run(["git", "-C", str(origin), "update-ref", f"refs/heads/pull-{sha[:8]}", sha], check=True)
            about = {"base": {"sha": git(checkout, "rev-parse", "main")}, "head": {"repo": {"fork": fork}}}
            event = {"event_name": "pull_request", "ref": "refs/pull/1/merge", "workflow": "rlk-lint", "sha": sha, "event": {"pull_request": about}}
            git(checkout, "checkout", "--quiet", branch)
            return event

        before = run("main", push())
        expect(before, None, 1)
        known = json.loads(before.uploads[0].read_text())["runs"][0]["results"]
        assert known, "the companions have findings, which are not to fail a pull request"

        git(checkout, "checkout", "--quiet", "-b", "change")
        target = checkout / "rl_engine/ops/gemm/det_gemm.py"
        original = target.read_text()
        target.write_text("# Nothing but a comment.\n" * 50 + original)
        git(checkout, "commit", "--quiet", "-am", "comment")
        expect(run("harmless", pull("change")), None, 1)

        target.write_text(original + REGRESSION)
        git(checkout, "commit", "--quiet", "-am", "regression")
        worse = run("regression", pull("change"))
        expect(worse, "Verdict", 1)
        results = json.loads(worse.uploads[0].read_text())["runs"][0]["results"]
        news = [result["ruleId"] for result in results if result.get("baselineState") == "new"]
        assert "RLK301" in news, f"the fallback is not among what is new: {news}"
        assert "RLK301" in worse.summary.read_text(), "the summary does not name it"
        assert "::error" in worse.log, "there is no annotation"
        expect(run("from-a-fork", pull("change", fork=True)), "Verdict", 0)

        git(checkout, "revert", "--no-edit", "HEAD")
        expect(run("reverted", pull("change")), None, 1)

        # A pin that nobody has: the run says so and uploads nothing.
        profile = checkout / "rlk-lint.toml"
        profile.write_text(re.sub(r'(?m)^(repository = "https://github.com/example/vllm"\ncommit = ")[0-9a-f]{8}', r"\g<1>00000000", profile.read_text()))
        git(checkout, "commit", "--quiet", "-am", "pin")
        lost = run("lost-pin", pull("change"))
        expect(lost, "Fetch the sources", 0)
        assert "could not be fetched from https://github.com/example/vllm" in lost.log, lost.log


if __name__ == "__main__":
    main()
