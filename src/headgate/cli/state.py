"""``headgate state``: backups of queries' state in erasure-coded fragments."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.errors import BadParameter, StateError

if TYPE_CHECKING:
    from headgate.state.backup import Backup
    from headgate.state.catalog import Catalog
    from headgate.state.manifest import Manifest
    from headgate.state.packing import Progress
    from headgate.state.saving import Saved
    from headgate.state.tags import Keys

PLACES_VARIABLE, KEY_VARIABLE = "HEADGATE_PLACES", "HEADGATE_KEY_FILE"


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    backup = _action(actions, "backup", "save a checkpoint, once or again and again; its query may be running")
    backup.add_argument("checkpoint", help="the query's checkpointLocation")
    _query(backup)
    backup.add_argument("--every", metavar="DURATION", help="go on, for example every 30s")
    backup.add_argument("--raw", type=int, default=7, metavar="R", help="blocks of data (default 7)")
    backup.add_argument("--check", type=int, default=3, metavar="C", help="blocks that may be lost (default 3)")
    backup.add_argument("--keep", type=int, default=3, metavar="K", help="backups that are kept (default 3)")
    show = _action(actions, "list", "which backups there are, and how many blocks each may still lose")
    show.add_argument("--json", action="store_true", help="as data")
    _query(_action(actions, "verify", "read every block of a query's backups and check it"))
    restore = _action(actions, "restore", "put a backup into a new checkpoint folder")
    _query(restore)
    restore.add_argument("--into", required=True, metavar="FOLDER", help="a folder that does not exist yet")
    restore.add_argument("--batch", type=int, metavar="N", help="not the newest backup, but that of this batch")
    _query(_action(actions, "repair", "make lost and damaged blocks anew, at places that answer"))
    serve = _action(actions, "serve", "keep other nodes' blocks in a folder of this machine", places=False)
    serve.add_argument("folder", help="where to keep them")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=int, default=7077, help="default 7077; 0 for any free one")


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, line: str, places: bool = True
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=line, description=line)
    if places:
        parser.add_argument("--place", action="append", default=[], metavar="[LABEL=]URL", help="a place; repeat it")
        parser.add_argument("--places", metavar="FILE", help=f"a file with one place per line (or ${PLACES_VARIABLE})")
        parser.add_argument("--topology", default="default", help="above the queries' names (default: default)")
    parser.add_argument("--key-file", metavar="FILE", help=f"the file that holds the secret key (or ${KEY_VARIABLE})")
    return parser


def _query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", required=True, metavar="NAME", help="the query's name")
    parser.add_argument("--instance", default="0", help="which of several of that name (default 0)")


def run(parsed: argparse.Namespace) -> int:
    actions = {
        "backup": _backup, "list": _list, "verify": _verify, "restore": _restore, "repair": _repair, "serve": _serve,
    }  # fmt: skip
    return actions[parsed.action](parsed)


# ---- actions


def _backup(parsed: argparse.Namespace) -> int:
    from headgate.core.durations import parse_duration
    from headgate.state.folder import open_folder

    every_s = None if parsed.every is None else parse_duration(parsed.every, "every")
    folder, saver = open_folder(parsed.checkpoint), _settings(parsed).saver(parsed.query)
    while True:
        with _progress("saving") as tell:
            saved = saver.save(folder, tell)
        print(_told(saved, parsed.query), flush=True)
        if every_s is None:
            return 0
        time.sleep(every_s)


def _told(saved: Saved | None, query: str) -> str:
    if saved is None:
        return f"{query}: nothing was committed since the last backup"
    manifest = saved.manifest
    text = (
        f"{query}: batch {manifest.batch}, {_bytes(manifest.bytes)} of state, {_bytes(manifest.own_bytes)} coded,"
        f" {saved.stored} blocks stored in {saved.took_s:.2f} s; any {saved.bears} places may be lost"
    )
    return text + "".join(f"\n    {name} failed: {why}" for name, why in saved.failed.items())


def _list(parsed: argparse.Namespace) -> int:
    from headgate.state.catalog import Catalog

    settings = _settings(parsed)
    places = settings.open()
    survey = places.survey()
    lines = sorted(line for line in survey.manifests if parsed.topology in ("default", line.topology))
    catalogs = [Catalog(places, line, settings.keys, survey) for line in lines]
    rows = [_row(catalog, manifest) for catalog in catalogs for manifest in catalog.manifests()]
    if parsed.json:
        print(json.dumps({"backups": rows, "silent": survey.silent}, indent=2))
        return 0
    for row in rows:
        saved, spare = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["saved_at_s"])), row["spare_blocks"]
        state = "LOST" if spare < 0 else f"may lose {spare} more of its {row['blocks']} blocks"
        print(f"{row['line']}  batch {row['batch']}  {saved}  {_bytes(row['bytes'])}  {state}")
    for catalog in catalogs:
        for pack, why in catalog.damaged.items():
            print(f"{catalog.line}  batch {pack.batch}  cannot be read: {why}")
    if not rows:
        print(f"no backups at these {len(places)} places")
    _print_silent(survey.silent)
    return 0


def _row(catalog: Catalog, manifest: Manifest) -> dict[str, Any]:
    return {
        "line": str(catalog.line),
        "batch": manifest.batch,
        "saved_at_s": manifest.saved_at_s,
        "bytes": manifest.bytes,
        "files": len(manifest.files),
        "packs": len(manifest.packs),
        "blocks": max((pack.code.blocks for pack in manifest.packs), default=0),
        "spare_blocks": catalog.spare(manifest),
    }


def _verify(parsed: argparse.Namespace) -> int:
    from headgate.state.repairing import bad_manifests, examine, lost, packs_of

    catalog = _settings(parsed).catalog(parsed.query)
    packs = packs_of(_readable(catalog))
    with _progress("reading", sum(pack.layout.fragment_bytes * pack.code.blocks for pack in packs)) as tell:
        health = examine(catalog, packs, tell)
    for each in health.values():
        verdict = "LOST" if each.spare < 0 else f"may lose {each.spare} more"
        blocks = each.pack.code.blocks
        print(f"pack {each.pack.id}  {blocks - len(each.missing)} of {blocks} blocks are good  {verdict}")
        for (index, name), why in each.damaged.items():
            print(f"    block {index} at {name}: {why}")
    bad = bad_manifests(catalog, catalog.manifests())
    for name, manifests in bad.items():
        print(f"{name}  {len(manifests)} tables of contents are missing or damaged")
    _print_silent(catalog.survey.silent)
    if gone := lost(catalog, health):
        raise StateError("; ".join(gone))
    return 1 if bad or any(each.missing for each in health.values()) else 0


def _restore(parsed: argparse.Namespace) -> int:
    from headgate.state.restoring import restore

    catalog = _settings(parsed).catalog(parsed.query)
    manifest = catalog.choose(parsed.batch)
    began_s = time.monotonic()
    with _progress("restoring", manifest.bytes) as tell:
        restore(catalog, manifest, parsed.into, tell)
    print(
        f"{parsed.query}: batch {manifest.batch}, {_bytes(manifest.bytes)} in {len(manifest.files)} files are in"
        f" {parsed.into} after {time.monotonic() - began_s:.2f} s; start the query with it as checkpointLocation"
    )
    return 0


def _repair(parsed: argparse.Namespace) -> int:
    from headgate.state.repairing import examine, lost, packs_of, repair

    catalog = _settings(parsed).catalog(parsed.query)
    packs = packs_of(_readable(catalog))
    with _progress("reading", sum(pack.layout.fragment_bytes * pack.code.blocks for pack in packs)) as tell:
        health = examine(catalog, packs, tell)
    missing = sum(each.pack.layout.fragment_bytes * len(each.missing) for each in health.values() if each.spare >= 0)
    with _progress("rebuilding", missing) as tell:
        made = repair(catalog, health, tell)
    for pack, placed in made.blocks.items():
        for index, name in placed.items():
            print(f"pack {pack}: block {index} is at {name} now")
    for name, repaired in made.manifests.items():
        print(f"{name}: {len(repaired)} tables of contents written")
    if not made.blocks and not made.manifests:
        print("nothing to repair")
    _print_silent(catalog.survey.silent)
    if gone := [*lost(catalog, health), *made.failed]:
        raise StateError("; ".join(gone))
    return 0


def _serve(parsed: argparse.Namespace) -> int:
    from headgate.state.stores.folder import FolderStore
    from headgate.state.stores.server import FragmentServer

    keys = _keys(parsed)
    if not keys.secret:
        raise BadParameter("key_file", None, "a server needs a key", f"give --key-file FILE, or set {KEY_VARIABLE}")
    with FragmentServer(FolderStore(parsed.folder), keys.peers, parsed.host, parsed.port) as server:
        print(f"keeping fragments in {parsed.folder}, at {server.url}", flush=True)
        server.serve_forever()
    return 0


# ---- what they share


def _settings(parsed: argparse.Namespace) -> Backup:
    from headgate.state.backup import Backup

    return Backup(
        places=_places(parsed),
        raw=getattr(parsed, "raw", 7),
        check=getattr(parsed, "check", 3),
        keep=getattr(parsed, "keep", 3),
        key_file=parsed.key_file or os.environ.get(KEY_VARIABLE),
        topology=parsed.topology,
        instance=getattr(parsed, "instance", "0"),
    )


def _places(parsed: argparse.Namespace) -> list[str]:
    places: list[str] = list(parsed.place)
    path = parsed.places or (os.environ.get(PLACES_VARIABLE) if not places else None)
    if path:
        try:
            lines = Path(path).expanduser().read_text().splitlines()
        except OSError as error:
            remedy = "name a file with one place per line"
            raise BadParameter("places", path, f"cannot be read ({error.strerror})", remedy) from error
        places += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not places:
        raise BadParameter("place", None, "no places are named", f"give --place, --places or {PLACES_VARIABLE}")
    return places


def _keys(parsed: argparse.Namespace) -> Keys:
    from headgate.state.backup import read_key
    from headgate.state.tags import Keys

    path = parsed.key_file or os.environ.get(KEY_VARIABLE)
    return Keys(None if path is None else read_key(path))


def _readable(catalog: Catalog) -> list[Manifest]:
    manifests = catalog.manifests()
    if not manifests:
        catalog.choose()  # says why there is none
    return manifests


def _print_silent(silent: dict[str, str]) -> None:
    for name, why in silent.items():
        print(f"no answer from {name}: {why}", file=sys.stderr)


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} bytes"


@contextmanager
def _progress(what: str, total: int | None = None) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
