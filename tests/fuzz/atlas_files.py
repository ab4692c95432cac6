"""What becomes of an atlas when one of its files is damaged?

`random_damage` changes bytes: everything must be refused. `structured_damage` changes the structure
and makes all checksums right again: the atlas may open with other values, which nobody can notice,
but it may end in no other error than ours.
"""

import random
import shutil
from collections import Counter
from pathlib import Path

import attention_atlas as aa
from tests.fuzz.damage import RANDOM, damage_structure
from tests.fuzz.made import files_of
from tests.fuzz.use import HUNG, Result, TooLong, outcome, time_limit, use

Counts = dict[str, Counter[str]]


def random_damage(atlas: Path, work: Path, count: int, seed: int) -> tuple[Counts, list[str]]:
    """Damage bytes of every file in turn; return the outcomes by kind of damage, and defects."""
    return _run(atlas, work, count, seed, structured=False)


def structured_damage(atlas: Path, work: Path, count: int, seed: int) -> tuple[Counts, list[str]]:
    """Damage the structure of every file in turn; return the outcomes by file, and defects."""
    return _run(atlas, work, count, seed, structured=True)


def _run(
    atlas: Path, work: Path, count: int, seed: int, structured: bool
) -> tuple[Counts, list[str]]:
    names = [path.relative_to(atlas) for path in files_of(atlas)]
    kinds: dict[str, list[Path]] = {}  # files of a folder are alike, and as likely as one other
    for name in names:
        kinds.setdefault(f"{name.parent}/*" if len(name.parts) > 1 else str(name), []).append(name)
    before = use(atlas)
    foreign = [name for name, given in before.items() if _is_foreign(given)]
    assert not foreign, f"the whole atlas ends in other errors: {foreign}"
    counts: Counts = {}
    defects: list[str] = []
    for case in range(count):
        luck = random.Random(f"{seed}-{case}-{structured}")
        folder = work / "x.atlas"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(atlas, folder)
        if structured:
            kind = list(kinds)[case % len(kinds)]
            path = folder / luck.choice(kinds[kind])
            damage_structure(folder, path, luck)
        else:
            path = folder / names[case % len(names)]
            spoil = RANDOM[(case // len(names)) % len(RANDOM)]
            kind = spoil.__name__
            path.write_bytes(spoil(bytearray(path.read_bytes()), luck))
        try:
            with time_limit():
                result, what = outcome(before, use(folder, not structured, before))
        except TooLong:
            result, what = HUNG, ""
        counts.setdefault(kind, Counter())[result] += 1
        if is_defect(result, structured):
            defects.append(f"case {case}, {path.relative_to(folder)}, {kind}: {result}: {what}")
    return counts, defects


def _is_foreign(given: Result) -> bool:
    return isinstance(given, BaseException) and not isinstance(given, aa.AtlasError)


def is_defect(result: str, structured: bool) -> bool:
    """Tell whether an outcome must not be."""
    from tests.fuzz.use import CHANGED, OTHER, SAME

    return result in ((OTHER, HUNG) if structured else (OTHER, HUNG, CHANGED, SAME))
