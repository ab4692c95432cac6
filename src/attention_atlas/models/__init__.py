"""What to run: a model from a hub id, a folder or live objects, and inputs of every kind.

    read_inputs ──▶ Input ──┐
                            ├── encode ──▶ Encoded ── collate ──▶ tensors for one forward pass
    load ─────────▶ Loaded ─┘

`inputs`, `tables` and `media` import neither torch nor transformers, so that listing a folder
of ten thousand pictures costs nothing.
"""
