"""Words that every room uses: errors, head names, progress."""
