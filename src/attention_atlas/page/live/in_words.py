"""What does a person read when something else than ours goes wrong? A sentence for what can happen.

A disk gets full, a folder is deleted while it is served, a model runs out of memory: none of these
is an error of ours, and each has something that the person can do. Names of folders are not told.
"""

import errno

from attention_atlas.names.errors import AtlasError, ModelError, StoreError
from attention_atlas.names.out_of_memory import is_out_of_memory

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
_FILES = (errno.EMFILE, errno.ENFILE)


def in_words(problem: BaseException) -> AtlasError | None:
    """Return an error of ours for a problem that can be explained; None for any other."""
    if isinstance(problem, AtlasError):
        return _of_cause(problem) or problem
    if is_out_of_memory(problem):
        return ModelError(
            "there is not enough memory for this; try a shorter input or fewer at once, or start "
            "the server on a machine with more"
        )
    if not isinstance(problem, OSError):
        return None
    if problem.errno in _FULL:
        return StoreError("the disk is full; free some space on the server, then try again")
    if problem.errno in _GONE:
        return StoreError(
            "a file of this atlas is no longer there; was its folder moved or deleted? Put it "
            "back, or start the server again without it"
        )
    if problem.errno in _FILES:
        return StoreError("too many files are open on the server; try again in a minute")
    if problem.errno is None:
        return None
    return StoreError(f"a file of this atlas cannot be used: {problem.strerror}")


def _of_cause(problem: AtlasError) -> AtlasError | None:
    """Return the sentence for what made the system fail, which ours tells for a command line.

    There it names folders, and advises to run the same command again.
    """
    cause = problem.__cause__
    told = isinstance(cause, OSError) and cause.errno in (*_FULL, *_GONE)
    if cause is not None and (told or is_out_of_memory(cause)):
        return in_words(cause)
    return None
