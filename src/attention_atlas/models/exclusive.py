"""How do threads share what belongs to the whole process?

Loading a model and running one for us both change things that belong to the whole process: torch's
default dtype and random numbers, transformers' logging and its table of attention functions, the
model's config and mode. Code that does so holds this lock, so threads wait for each other.
"""

from threading import RLock

EXCLUSIVE = RLock()  # one thread may enter it again: a run may load or run another model
