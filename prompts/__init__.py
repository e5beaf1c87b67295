"""One text per model call and language, read by `crag.models.prompting`."""
