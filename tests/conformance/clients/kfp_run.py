"""The Kubeflow example under the real kfp: compiled, and its component run as its pod would run it.

Prints a line of JSON: what the compiled pipeline says of itself, and what the component returned, twice.
"""

import json
import sys
from pathlib import Path

import yaml

FOLDER, URL = sys.argv[1:3]
sys.path.insert(0, FOLDER)

from kfp import compiler, local  # noqa: E402

import inferlane_kfp  # noqa: E402 - from the folder


def main() -> None:
    """Compile, then run the component's own command in a process of its own."""
    compiler.Compiler().compile(inferlane_kfp.recheck_texts, "pipeline.yaml")
    specification, platform = yaml.safe_load_all(Path("pipeline.yaml").read_text(encoding="utf-8"))
    local.init(local.SubprocessRunner(use_venv=False))
    asked = {"url": URL, "model": "m", "source": "s3://b/in/", "target": "s3://b/out/", "names": ["run", "task"]}
    outputs = [inferlane_kfp.transform_dataset(**asked).output for _ in range(2)]
    secret = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]["exec-transform-dataset"]
    print(
        json.dumps(
            {
                "pipeline": specification["pipelineInfo"]["name"],
                "inputs": sorted(specification["root"]["inputDefinitions"]["parameters"]),
                "secret": secret["secretAsEnv"][0]["secretName"],
                "outputs": outputs,
            }
        )
    )


main()
