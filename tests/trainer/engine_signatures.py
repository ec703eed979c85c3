"""The signatures that the rollout engines call, read from the wheels of vLLM and SGLang without installing them.

    pip download --no-deps vllm sglang
    python tests/trainer/engine_signatures.py vllm-*.whl sglang-*.whl > tests/trainer/engine_signatures.json

Parameters are listed by name, with a star before those that are keyword-only, and an equals sign after those with a default.
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch

FUNCTIONS = {  # package: (file, class, method)
    "vllm": [
        ("vllm/entrypoints/llm.py", "LLM", "__init__"),
        ("vllm/entrypoints/llm.py", "LLM", "generate"),
        ("vllm/entrypoints/llm.py", "LLM", "collective_rpc"),
        ("vllm/v1/worker/gpu_model_runner.py", "GPUModelRunner", "reload_weights"),
    ],
    "sglang": [
        ("sglang/srt/entrypoints/engine.py", "Engine", "generate"),
        ("sglang/srt/entrypoints/engine.py", "Engine", "update_weights_from_disk"),
        ("sglang/srt/entrypoints/engine.py", "Engine", "shutdown"),
    ],
}
FIELDS = {  # package: (files, name of the class)
    "vllm": [
        ("vllm/sampling_params.py", "SamplingParams"),
        ("vllm/engine/arg_utils.py", "EngineArgs"),
        ("vllm/outputs.py", "CompletionOutput"),
        ("vllm/logprobs.py", "Logprob"),
    ],
    "sglang": [
        ("sglang/srt/sampling/sampling_params.py", "SamplingParams"),
        ("sglang/srt/arg_groups/fields/*.py", "*"),
    ],
}


def classes(wheel: zipfile.ZipFile, pattern: str, name: str) -> Iterator[ast.ClassDef]:
    for path in (path for path in wheel.namelist() if fnmatch(path, pattern)):
        for node in ast.walk(ast.parse(wheel.read(path))):
            if isinstance(node, ast.ClassDef) and fnmatch(node.name, name):
                yield node


def parameters(method: ast.FunctionDef) -> list[str]:
    given = method.args
    plain = [*given.posonlyargs, *given.args][1:]
    bare = len(plain) - len(given.defaults)
    found = [one.arg + ("=" if place >= bare else "") for place, one in enumerate(plain)]
    found += [f"*{one.arg}" + ("=" if default else "") for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return found + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


def read(path: str) -> tuple[str, dict[str, object]]:
    package, version = path.rsplit("/", 1)[-1].split("-")[:2]
    with zipfile.ZipFile(path) as wheel:
        found: dict[str, object] = {"version": version}
        for file, owner, method in FUNCTIONS[package]:
            body = next(classes(wheel, file, owner)).body
            (one,) = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == method]
            found[f"{owner}.{method}"] = parameters(one)
        for file, owner in FIELDS[package]:
            names = [
                node.target.id
                for one in classes(wheel, file, owner)
                for node in one.body
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            ]
            found["ServerArgs" if owner == "*" else owner] = sorted(names)
    return package, found


if __name__ == "__main__":
    packages = []
    for package, found in map(read, sys.argv[1:]):
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
        packages.append(f' "{package}": {{\n{lines}\n }}')
    print("{\n" + ",\n".join(packages) + "\n}")
