"""The front door's OpenAPI document, made from the code that answers: `python -m workbench.openapi`."""
