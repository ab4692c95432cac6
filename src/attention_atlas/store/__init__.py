"""The atlas on disk: manifest, tables, shards. Nothing here imports torch or transformers."""
