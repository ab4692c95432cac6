"""Model + inputs → atlas: watch a model run, prove what was seen, write it down.

(The folder is not called `capture`, because `attention_atlas.capture` is the public function.)
"""
