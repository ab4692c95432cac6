"""Where is the page shown? Server, notebook, saved file, figure."""
