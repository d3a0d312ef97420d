"""What the builds of the models share: texts, head, archive, probe, figures. None of it is served."""
