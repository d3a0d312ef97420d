"""An offline SageMaker: control plane, runtime, Application Auto Scaling's calls, and real model processes.

Run it with `python -m workbench.stack.sagemaker` (see `--help`). Container images are not pulled and
`code/requirements.txt` is not installed: the archive's code runs in this environment's Python, under the same contract
(`/ping`, `/invocations`) as in SageMaker's own containers.

Rooms, each knowing only those before it:
- `api`: how AWS speaks: shapes, errors, pages
- `scaling`: Application Auto Scaling
- `model`: model archives and the processes that serve them: instances, containers, their queues and health
- `control`: models, endpoint configurations, endpoints, and their life
- `transform`: batch transform jobs
- `metrics`: what CloudWatch sees
- `runtime`: InvokeEndpoint
"""
