"""An offline SageMaker: control plane, runtime, Application Auto Scaling's calls, and real model processes."""
