"""What went wrong while a model was fetched or read?"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from logging import LogRecord

import torch
from huggingface_hub import errors as hub
from transformers.utils import logging

from attention_atlas.names.errors import ModelError


@contextmanager
def as_model_error(name: str) -> Iterator[None]:
    """Turn whatever transformers and the hub raise inside into one ModelError."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(_sentence(name, error)) from error


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Hide bars where nobody would see them move, and transformers' table of unused tensors."""
    shown = logging.is_progress_bar_enabled()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    logger = logging.get_logger("transformers.modeling_utils")
    logger.addFilter(_is_no_report)
    try:
        yield
    finally:
        logger.removeFilter(_is_no_report)
        if shown:
            logging.enable_progress_bar()


def _is_no_report(record: LogRecord) -> bool:
    return record.funcName != "log_state_dict_report"


@contextmanager
def same_dice() -> Iterator[None]:
    """Seed torch, so that tensors which a checkpoint lacks are the same at each load."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def tell_missing(name: str, missing: frozenset[str]) -> None:
    """Say on stderr which tensors the checkpoint lacks, if any."""
    if missing:
        few = ", ".join(sorted(missing)[:2]) + (", …" if len(missing) > 2 else "")
        print(
            f"the weights of {name} lack {len(missing)} tensors outside its layers ({few}); "
            "they are set at random, the same each time",
            file=sys.stderr,
        )


def _sentence(name: str, error: BaseException) -> str:
    causes = list(_chain(error))
    if any(isinstance(cause, hub.GatedRepoError) for cause in causes):
        return (
            f"{name} is gated; ask for access at https://huggingface.co/{name} and log in "
            "with: hf auth login"
        )
    if any(
        isinstance(cause, hub.RepositoryNotFoundError | hub.HFValidationError) for cause in causes
    ):
        return f"no model on the hub and no folder here is called {name}; check the name"
    if any(isinstance(cause, hub.RevisionNotFoundError) for cause in causes):
        return f"{name} has no such revision; check the branch, tag or commit"
    if any(isinstance(cause, _UNREACHABLE) for cause in causes):
        return (
            f"{name} is neither a folder here nor in the cache, and the hub cannot be reached; "
            "check the network or give a folder"
        )
    said = " ".join(str(error).split()) or type(error).__name__
    if "trust_remote_code" in said:
        return f"{name} brings its own code; read it, then pass trust_remote_code=True to run it"
    if "safetensors" in said and "does not appear to have a file" in said:
        return (
            f"{name} has no safetensors weights, and pickle weights are not loaded because they "
            "can run code; load them yourself, then write them with model.save_pretrained"
        )
    if isinstance(error, ImportError):
        return f"{name} needs a package that is not installed: {_first(said)}"
    return f"{name} cannot be loaded: {_first(said)}"


_UNREACHABLE = (
    hub.OfflineModeIsEnabled,
    hub.LocalEntryNotFoundError,
    ConnectionError,
    TimeoutError,
)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _first(said: str) -> str:
    return said.split(". ")[0].removesuffix(".")[:300]
