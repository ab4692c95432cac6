"""How does the C library keep the memory of freed arrays for the next ones?

glibc gives arrays larger than it ever saw freed back to the system, and the system clears each new
one page by page. That doubled the time of weights, and took a tenth of what a capture costs.
"""

import numpy as np

MOST = 32 * 2**20 - 2**16  # bytes: glibc gives larger ones back, whatever it saw


def keep_freed_arrays(size: int = MOST) -> None:
    """Let the C library keep freed arrays of up to `size` bytes, and twice as much in all.

    The array that shows it the size is never written to, so it costs nothing.
    """
    np.empty(min(size, MOST), np.uint8)
