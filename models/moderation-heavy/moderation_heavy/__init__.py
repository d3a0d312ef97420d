"""How moderation-heavy is made and measured. None of this is served: the archive holds code/, not this package."""
