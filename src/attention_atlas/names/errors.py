"""What can go wrong, in sentences a person can act on.

    AtlasError
    ├── InputError      what was given to look at cannot be read or does not fit the model
    ├── ModelError      the model cannot be found, loaded or captured
    ├── StoreError      the folder on disk is damaged, newer, in use, or the disk is full
    └── PickError       no head, tower, input or token of that name

A message says what was asked, what there is, and what to do. The command line prints it as
one line on stderr and exits with 2.
"""


class AtlasError(Exception):
    """The base of every error that this package raises on purpose."""


class InputError(AtlasError):
    """What was given to look at cannot be read or does not fit the model."""


class ModelError(AtlasError):
    """The model cannot be found, loaded or captured."""


class StoreError(AtlasError):
    """The folder on disk is damaged, newer than this version, or cannot be written."""


class PickError(AtlasError):
    """No head, tower, input or token of that name."""
