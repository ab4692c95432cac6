"""Did memory run out? NumPy, torch on the CPU and torch on a GPU each say it in their own way."""

_WORDS = ("out of memory", "can't allocate memory", "not enough memory")


def is_out_of_memory(problem: BaseException) -> bool:
    """Tell whether something failed for lack of memory; torch need not be imported for this."""
    if isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryError":
        return True
    said = str(problem).lower()
    return isinstance(problem, RuntimeError) and any(words in said for words in _WORDS)
