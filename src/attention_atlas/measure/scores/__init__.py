"""One measure, one file; `measures.MEASURES` lists them."""
