"""Which errors can this package raise?

    AtlasError
    ├── InputError      the given text, picture or tensor cannot be read or does not fit the model
    ├── ModelError      the model cannot be found, loaded or captured
    ├── StoreError      the folder is damaged, newer than this version, in use or not writable
    └── PickError       there is no head, tower, input or token of that name

A message says what was asked, what there is, and what to do. The command line prints it as
one line on stderr and exits with 2.
"""


class AtlasError(Exception):
    """The base class of every error that this package raises on purpose."""


class InputError(AtlasError):
    """The given text, picture or tensor cannot be read or does not fit the model."""


class ModelError(AtlasError):
    """The model cannot be found, loaded or captured."""


class StoreError(AtlasError):
    """The folder on disk is damaged, newer than this version, in use or not writable."""


class PickError(AtlasError):
    """There is no head, tower, input or token of that name."""
