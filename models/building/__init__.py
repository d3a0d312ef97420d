"""What the builds of the models under models/ share: texts, head, archive, probe, figures. None of it is served."""
