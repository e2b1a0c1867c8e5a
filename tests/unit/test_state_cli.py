"""``headgate state`` from end to end, with folders and real fragment servers as places."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headgate.cli.main import main
from headgate.state.stores.folder import FolderStore
from headgate.state.stores.server import FragmentServer
from headgate.state.tags import Keys
from tests.checkpoints import GrowingCheckpoint, contents, needed_of

SECRET = "a shared secret"


@pytest.fixture
def where(tmp_path: Path) -> Iterator[list[str]]:
    """Three folders and two peers, in a file; and a key."""
    with ExitStack() as servers:
        lines = ["# where the blocks are", *(str(tmp_path / f"place-{number}") for number in range(3)), ""]
        for number in (3, 4):
            store = FolderStore(tmp_path / f"place-{number}")
            server = servers.enter_context(FragmentServer(store, Keys(SECRET).peers))
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
            servers.callback(server.shutdown)
            lines.append(server.url)
        (tmp_path / "places.txt").write_text("\n".join(lines))
        (tmp_path / "key").write_text(f"{SECRET}\n")
        yield ["--places", str(tmp_path / "places.txt"), "--key-file", str(tmp_path / "key")]


def save(checkpoint: GrowingCheckpoint, where: list[str]) -> None:
    code = ["--raw", "3", "--check", "2"]
    assert main(["state", "backup", str(checkpoint.root), "--query", "q", *code, *where]) == 0


def test_backup_loss_and_restore(
    checkpoint: GrowingCheckpoint, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(checkpoint, where)
    assert "q: batch 2" in capsys.readouterr().out
    save(checkpoint, where)
    assert "nothing was committed" in capsys.readouterr().out
    for number in (1, 3):
        shutil.rmtree(tmp_path / f"place-{number}")
    into = tmp_path / "restored"
    assert main(["state", "restore", "--query", "q", "--into", str(into), *where]) == 0
    assert contents(into) == needed_of(checkpoint)
    assert main(["state", "restore", "--query", "q", "--into", str(into), *where]) == 2
    assert "there is something already" in capsys.readouterr().err


def test_list(
    checkpoint: GrowingCheckpoint, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["state", "list", *where]) == 0
    assert "no backups at these 5 places" in capsys.readouterr().out
    save(checkpoint, where)
    capsys.readouterr()
    assert main(["state", "list", *where]) == 0
    assert "default/q/0  batch 2" in (line := capsys.readouterr().out) and "may lose 2 more of its 5 blocks" in line
    shutil.rmtree(tmp_path / "place-0")
    assert main(["state", "list", "--json", *where]) == 0
    assert [row["spare_blocks"] for row in json.loads(capsys.readouterr().out)["backups"]] == [1]


def test_verify_and_repair(
    checkpoint: GrowingCheckpoint, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(checkpoint, where)
    assert main(["state", "verify", "--query", "q", *where]) == 0
    fragment = next((tmp_path / "place-1").rglob("*.fragment"))
    fragment.write_bytes(fragment.read_bytes()[:-1] + b"?")
    shutil.rmtree(tmp_path / "place-4")
    capsys.readouterr()
    assert main(["state", "verify", "--query", "q", *where]) == 1
    assert "3 of 5 blocks are good" in (out := capsys.readouterr().out) and "is damaged" in out
    assert main(["state", "repair", "--query", "q", *where]) == 0
    assert capsys.readouterr().out.count("is at") == 2
    assert main(["state", "verify", "--query", "q", *where]) == 0
    assert main(["state", "repair", "--query", "q", *where]) == 0
    assert "nothing to repair" in capsys.readouterr().out


def test_what_cannot_be_restored_is_told(
    checkpoint: GrowingCheckpoint, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(checkpoint, where)
    for number in (0, 1, 2):
        shutil.rmtree(tmp_path / f"place-{number}")
    for action in (["restore", "--into", str(tmp_path / "r")], ["verify"], ["repair"]):
        assert main(["state", action[0], "--query", "q", *action[1:], *where]) == 2
        assert "2 of 5 blocks" in capsys.readouterr().err


def test_wrong_key(
    checkpoint: GrowingCheckpoint, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(checkpoint, where)
    (tmp_path / "key").write_text("another secret")
    assert main(["state", "restore", "--query", "q", "--into", str(tmp_path / "r"), *where]) == 2
    assert "another key" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["list"], "no places are named"),
        (["list", "--places", "/no/such/file"], "cannot be read"),
        (["list", "--place", "/tmp/x", "--key-file", "/no/such/key"], "key_file"),
        (["serve", "/tmp/x"], "a server needs a key"),
        (["backup", "/no/such/checkpoint", "--query", "q", "--place", "/tmp/x"], "is no folder"),
        (["list", "--place", "http://127.0.0.1:1"], "shared key"),
    ],
)
def test_mistakes(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADGATE_PLACES", raising=False)
    monkeypatch.delenv("HEADGATE_KEY_FILE", raising=False)
    assert main(["state", *arguments]) == 2
    assert told in capsys.readouterr().err
