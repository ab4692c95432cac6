"""What does every package use? Errors, head names, options, progress, token texts."""
