"""Does a claim about a model hold? A claim is a saved test: inputs, edits, metric, expectation."""
