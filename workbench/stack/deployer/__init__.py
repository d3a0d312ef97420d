"""Deploys the unmodified Pulumi program to a LocalStack-compatible endpoint, without Pulumi's engine or provider
plugin.

The program runs in Pulumi's own mock seam (`program`, `monitor`); each registration is compared with the recorded state
(`diff`, `state`) and carried out with boto3 by the type's declarative row (`rows`, `handler`, `cloud`) under the
engine. The engine's and the provider's own diffing is therefore not exercised here.

`python -m workbench.stack.deployer {up,preview,destroy,outputs} --stack S --project-dir . --state FILE`
"""
