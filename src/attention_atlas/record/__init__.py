"""How does a model with its inputs become an atlas? Watch it run, prove what was seen, write it.

(The folder is not called `capture`, because `attention_atlas.capture` is the public function.)
"""
