"""The workflows for GitHub are valid, cover what is supported, and run commands that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[1]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
ACTIONS = {
    *("cache", "checkout", "configure-pages", "deploy-pages", "download-artifact"),
    *("setup-python", "upload-artifact", "upload-pages-artifact"),
}


def read(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)  # so YAML reads the word
    return found


def project() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_valid(path: Path) -> None:
    workflow = read(path)
    assert set(workflow) <= {"name", "on", "permissions", "concurrency", "jobs"}
    assert workflow["name"] == path.stem and workflow["on"] and workflow["permissions"]["contents"] == "read"
    for name, job in workflow["jobs"].items():
        assert {"runs-on", "timeout-minutes", "steps"} <= set(job), name
        assert set(job) <= {
            *("runs-on", "timeout-minutes", "steps", "strategy", "env", "environment", "needs", "defaults"),
        }, name
        assert set([job["needs"]] if "needs" in job else []) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert set(step) <= {"uses", "run", "with", "env", "id", "if"}
            if "uses" in step:
                action, version = re.fullmatch(r"actions/([\w-]+)@v(\d+)", step["uses"]).groups()  # type: ignore[union-attr]
                assert action in ACTIONS and int(version) >= 3


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_secrets_and_no_addresses(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "secrets" not in text and "://" not in text
    # What is not of GitHub's own is given by the workflow itself.
    assert set(re.findall(r"\$\{\{ *(\w+)\.", text)) <= {"github", "matrix", "steps"}


def test_the_whole_suite_runs_on_all_systems_and_versions() -> None:
    job = read(PROJECT / ".github" / "workflows" / "ci.yml")["jobs"]["platforms"]
    matrix = job["strategy"]["matrix"]
    assert {one.partition("-")[0] for one in matrix["os"]} == {"ubuntu", "macos", "windows"}
    supported = [
        match[1]
        for classifier in project()["project"]["classifiers"]
        if (match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier))
    ]
    assert matrix["python"][:-1] == supported, "and the next version"
    assert f"Python {supported[0]} to {supported[-1]} on Linux" in (PROJECT / "README.md").read_text(encoding="utf-8")
    options = project()["tool"]["pytest"]["ini_options"]["addopts"]
    usual = options[options.index("-m") + 1]
    commands = [step["run"] for step in job["steps"] if "pytest" in step.get("run", "")]
    assert len(commands) == 2
    for command in commands:
        assert f'-m "not browser and {usual}"' in command, "everything but what needs a browser"


def test_commands_name_extras_and_files_that_exist() -> None:
    extras = set(project()["project"]["optional-dependencies"])
    for path in WORKFLOWS:
        for job in read(path)["jobs"].values():
            for step in job["steps"]:
                command = step.get("run", "")
                for names in re.findall(r"\.\[([\w,]+)\]", command):
                    assert set(names.split(",")) <= extras, command
                for name in re.findall(r"(?<![\w/])(?:tests/\S+\.py|\.ci/run)", command):
                    assert (PROJECT / name).is_file(), command
