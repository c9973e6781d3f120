"""Runs a GitHub workflow as a hosted runner would, as far as the example workflow and the action of this repository need it.

In: a workflow file, an event, repositories by address. Out: per job whether it passed, its outputs, and what was uploaded. Refused: expressions,
actions, inputs and keys that are not known here, since passing over one would pass over a mistake.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

import yaml

TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<word>[A-Za-z_][\w.-]*)|(?P<mark>==|!=|&&|\|\||[!()]))")
STEP_KEYS = {"name", "id", "uses", "with", "env", "run", "shell", "if"}
PINNED = re.compile(r"^(actions/checkout|actions/cache|github/codeql-action/upload-sarif)@[0-9a-f]{40}$")


class Failed(Exception):
    """A step ended with an error."""


def evaluate(expression, context):
    """The value of an expression: names, texts, `==`, `!=`, `!`, `&&`, `||` and parentheses, as GitHub defines them."""
    tokens, at = [], 0
    text = expression.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise ValueError(f"the expression {expression!r} is not understood at {text[at:]!r}")
        tokens.append(match)
        at = match.end()
    tokens.reverse()

    def peek():
        return tokens[-1].group("mark") if tokens else None

    def single():
        token = tokens.pop()
        if token.group("text"):
            return token.group("text")[1:-1].replace("''", "'")
        if token.group("mark") == "!":
            return not single()
        if token.group("mark") == "(":
            value = either()
            assert tokens.pop().group("mark") == ")", expression
            return value
        word = token.group("word")
        assert word, expression
        if word in ("true", "false"):
            return word == "true"
        value = context
        for part in word.split("."):
            # A property that is missing is null, but a context that is missing is a mistake.
            if value is context and part not in value:
                raise ValueError(f"{word!r} in {expression!r} is not known")
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def compared():
        value = single()
        while peek() in ("==", "!="):
            same = tokens.pop().group("mark") == "=="
            value = (shown(value) == shown(single())) == same
        return value

    def both():
        value = compared()
        while peek() == "&&":
            tokens.pop()
            right = compared()
            value = right if value else value
        return value

    def either():
        value = both()
        while peek() == "||":
            tokens.pop()
            right = both()
            value = value or right
        return value

    value = either()
    assert not tokens, expression
    return value


def shown(value):
    """A value as text."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def filled(value, context):
    """A text with its expressions replaced."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: shown(evaluate(match[1], context)), shown(value))


class Job:
    """One run of one job."""

    def __init__(self, folder, action, remote, event, caches, variables):
        self.temp, self.workspace = folder / "temp", folder / "workspace"
        for path in (self.temp, self.workspace):
            path.mkdir(parents=True)
        self.action, self.remote, self.event, self.caches = action, remote, event, caches
        self.uploads, self.log, self.failed, self.count = [], "", None, 0
        self.summary = folder / "summary.md"
        self.to_cache = []
        self.environment = {
            "GITHUB_WORKSPACE": str(self.workspace), "RUNNER_TEMP": str(self.temp), "RUNNER_OS": "Linux", "RUNNER_ARCH": "X64",
            "GITHUB_STEP_SUMMARY": str(self.summary), "CI": "true", "GITHUB_ACTIONS": "true", **variables,
        }

    def run(self, workflow):
        """Runs the workflow's one job."""
        (job,) = workflow["jobs"].values()
        self.steps(job["steps"], {"github": self.event, "steps": {}}, {})
        for key, path in self.to_cache:
            if not self.failed and path.exists() and key not in self.caches:
                kept = self.temp.parent / "cache"
                shutil.copytree(path, kept)
                self.caches[key] = kept
        return self

    def steps(self, steps, context, more):
        """Runs steps in order; the first failure stops them. Each output of a step lands in the context."""
        for step in steps:
            unknown = set(step) - STEP_KEYS
            assert not unknown, f"keys {unknown} of step {step.get('name')}"
            if "if" in step and not evaluate(re.sub(r"^\$\{\{|\}\}$", "", str(step["if"]).strip()), context):
                continue
            outputs = self.shell(step, context, more) if "run" in step else self.use(step, context)
            if "id" in step:
                context["steps"][step["id"]] = {"outputs": outputs}

    def shell(self, step, context, more):
        """Runs a script; its outputs."""
        assert "${{" not in step["run"], "a value in a script is a script: it has to go through env"
        self.count += 1
        output = self.temp / f"output-{self.count}"
        output.touch()
        variables = {**self.environment, **more, "GITHUB_OUTPUT": str(output)}
        variables.update({key: filled(value, context) for key, value in step.get("env", {}).items()})
        assert step.get("shell", "bash") == "bash"
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        ended = subprocess.run(command, cwd=self.workspace, env=variables, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.log += f"== {step.get('name')}\n{ended.stdout}{ended.stderr}"
        if ended.returncode:
            self.failed = step.get("name")
            raise Failed(f"step {self.failed!r} ended with {ended.returncode}")
        return dict(line.split("=", 1) for line in output.read_text().splitlines())

    def use(self, step, context):
        """Runs an action."""
        name = step["uses"]
        given = {key: filled(value, context) for key, value in step.get("with", {}).items()}
        if name.startswith("RL-Align/rlk-lint@"):
            return self.composite(given)
        assert PINNED.match(name), f"{name} is not pinned by its commit, or not known here"
        which = name.split("@")[0]
        if which == "actions/checkout":
            assert given == {"fetch-depth": "0", "persist-credentials": "false"}, given
            git = ["git", "-C", str(self.workspace)]
            subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(self.remote), str(self.workspace)], check=True)
            subprocess.run([*git, "checkout", "--quiet", "--detach", self.event["sha"]], check=True)
        elif which == "actions/cache":
            key, path = given["key"], Path(given["path"])
            assert key and set(given) == {"key", "path"}, given
            kept = self.caches.get(key) or self.caches.get("any")
            if kept:
                shutil.copytree(kept, path)
            else:
                self.to_cache.append((key, path))
        else:
            assert set(given) == {"sarif_file", "category"} and given["category"], given
            self.uploads.append(Path(given["sarif_file"]))
        return {}

    def composite(self, given):
        """Runs the action of this repository."""
        action = yaml.safe_load((self.action / "action.yml").read_text())
        unknown = set(given) - set(action["inputs"])
        assert not unknown, f"the action has no inputs {unknown}"
        inputs = {key: given.get(key, shown(about.get("default"))) for key, about in action["inputs"].items()}
        context = {"inputs": inputs, "steps": {}, "github": self.event}
        self.steps(action["runs"]["steps"], context, {"GITHUB_ACTION_PATH": str(self.action)})
        return {key: filled(about["value"], context) for key, about in action["outputs"].items()}
