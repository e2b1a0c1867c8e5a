"""One contract for all places."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from headgate.errors import BadParameter
from headgate.state.stores.folder import PART, TORN_S, FolderStore
from headgate.state.stores.memory import MemoryStore
from headgate.state.stores.opening import open_place, open_places
from headgate.state.stores.peer import PeerStore
from headgate.state.stores.port import FragmentStore
from headgate.state.stores.remote import RemoteStore
from headgate.state.stores.server import FragmentServer
from headgate.state.stores.signing import CLOCKS_APART_S, Doorkeeper, body_signer, sign
from headgate.state.tags import Keys
from headgate.state.urls import without_credentials

KEY = Keys("a shared secret").peers


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FragmentServer]:
    with FragmentServer(FolderStore(tmp_path / "served"), KEY) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(params=["memory", "folder", "fsspec", "peer"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FragmentStore:
    match request.param:
        case "memory":
            return MemoryStore()
        case "folder":
            return FolderStore(tmp_path / "folder")
        case "fsspec":
            filesystem, root = fsspec.core.url_to_fs(f"memory://{tmp_path.name}-{id(tmp_path)}")
            return RemoteStore(filesystem, root, "memory", "memory")
    return PeerStore(request.getfixturevalue("server").url, KEY)


class TestContract:
    def test_what_was_put_is_got(self, store: FragmentStore) -> None:
        store.put("a/b/c", [b"one", memoryview(b"two"), bytearray(b"three")])
        assert store.get("a/b/c") == b"onetwothree"

    def test_ranges(self, store: FragmentStore) -> None:
        store.put("k", [b"0123456789"])
        assert store.get("k", 3) == b"3456789"
        assert store.get("k", 3, 5) == b"34"
        assert store.get("k", 0, 2) == b"01"
        assert store.get("k", 8, 100) == b"89"

    def test_empty_content(self, store: FragmentStore) -> None:
        store.put("k", [])
        assert store.get("k") == b""
        assert store.find() == {"k": 0}

    def test_what_is_not_there(self, store: FragmentStore) -> None:
        with pytest.raises(FileNotFoundError):
            store.get("nothing/here")
        assert store.find("nothing") == {}
        store.delete("nothing/here")

    def test_a_put_replaces(self, store: FragmentStore) -> None:
        store.put("k", [b"first, and longer"])
        store.put("k", [b"second"])
        assert store.get("k") == b"second"

    def test_find_lists_a_folder_of_the_tree(self, store: FragmentStore) -> None:
        for key in ("a/b/1", "a/b/2", "a/bc/3", "d/4"):
            store.put(key, [b"x" * 5])
        assert store.find("a/b") == {"a/b/1": 5, "a/b/2": 5}
        assert set(store.find()) == {"a/b/1", "a/b/2", "a/bc/3", "d/4"}

    def test_deleted_is_gone(self, store: FragmentStore) -> None:
        store.put("a/b", [b"x"])
        store.put("a/c", [b"y"])
        store.delete("a/b")
        assert store.find() == {"a/c": 1}

    def test_an_interrupted_put_leaves_what_was_there(self, store: FragmentStore) -> None:
        def broken() -> Iterator[bytes]:
            yield b"half of"
            raise RuntimeError("interrupted")

        store.put("old", [b"old"])
        for key in ("old", "new"):
            with pytest.raises((RuntimeError, OSError)):
                store.put(key, broken())
        assert store.find() == {"old": 3}
        assert store.get("old") == b"old"

    def test_odd_names(self, store: FragmentStore) -> None:
        store.put("top%2Fic/a%20b/0/x", [b"x"])
        assert store.find("top%2Fic/a%20b") == {"top%2Fic/a%20b/0/x": 1}
        assert store.get("top%2Fic/a%20b/0/x") == b"x"

    def test_large_content_in_chunks(self, store: FragmentStore) -> None:
        chunk = bytes(range(256)) * 1024
        store.put("k", (chunk for _ in range(8)))
        assert store.get("k") == chunk * 8

    def test_many_at_once(self, store: FragmentStore) -> None:
        threads = [threading.Thread(target=store.put, args=(f"t/{n}", [str(n).encode() * 1000])) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(store.get(f"t/{n}") == str(n).encode() * 1000 for n in range(8))


class TestFolder:
    def test_keys_cannot_lead_out(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path / "inside")
        for key in ("../outside", "/etc/passwd", "a/../../outside"):
            with pytest.raises(PermissionError):
                store.put(key, [b"x"])
            with pytest.raises(PermissionError):
                store.get(key)
        assert not (tmp_path / "outside").exists()

    def test_what_killed_writers_left_is_swept_away(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path)
        store.put("a/b", [b"x"])
        old, new = tmp_path / f"a/c.0{PART}", tmp_path / f"a/d.0{PART}"
        for torn in (old, new):
            torn.write_bytes(b"half of it")
        os.utime(old, (time.time() - TORN_S - 1,) * 2)
        assert store.find() == {"a/b": 1}
        assert new.exists() and not old.exists()

    def test_folders_that_lead_nowhere_are_removed(self, tmp_path: Path) -> None:
        store = FolderStore(tmp_path)
        store.put("a/b/c", [b"x"])
        store.delete("a/b/c")
        assert list(tmp_path.iterdir()) == []


class TestPeer:
    def test_another_key_is_refused(self, server: FragmentServer) -> None:
        stranger = PeerStore(server.url, Keys("another secret").peers)
        for act in (lambda: stranger.get("k"), lambda: stranger.put("k", [b"x"]), lambda: stranger.find()):
            with pytest.raises(PermissionError, match="another key"):
                act()
        assert server.store.find() == {}

    def test_keys_cannot_lead_out_of_the_served_folder(self, server: FragmentServer) -> None:
        with pytest.raises(PermissionError, match="leads out"):
            PeerStore(server.url, KEY).put("../../x", [b"x"])

    def test_an_upload_that_was_changed_on_its_way_is_not_stored(
        self, server: FragmentServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        changed = lambda key, request: body_signer(key, request + "x")  # noqa: E731
        monkeypatch.setattr("headgate.state.stores.peer.body_signer", changed)
        with pytest.raises(OSError, match="changed on its way"):
            PeerStore(server.url, KEY).put("k", [b"x" * 100_000])
        assert server.store.find() == {}

    def test_an_upload_that_is_cut_off_is_not_stored(self, server: FragmentServer) -> None:
        host, port = server.server_address[:2]
        with socket.create_connection((str(host), port)) as connection:
            head = f"PUT /fragment/k HTTP/1.1\r\nAuthorization: {sign(KEY, 'PUT', '/fragment/k', time.time())}\r\n"
            connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhal".encode())
            connection.shutdown(socket.SHUT_WR)
            assert b"400" in connection.recv(1000)
        assert server.store.find() == {}

    def test_a_connection_that_was_closed_is_opened_anew(self, server: FragmentServer) -> None:
        peer = PeerStore(server.url, KEY)
        peer.put("k", [b"x"])
        peer._idle[0].sock.shutdown(socket.SHUT_RDWR)
        assert peer.get("k") == b"x"

    def test_a_peer_that_is_not_there_is_an_os_error(self) -> None:
        with pytest.raises(OSError):
            PeerStore("http://127.0.0.1:9", KEY).get("k")

    def test_requests_are_good_once_and_for_a_while(self) -> None:
        doorkeeper = Doorkeeper(KEY)
        signed = sign(KEY, "GET", "/tree/", 1000.0)
        assert doorkeeper.refusal("GET", "/tree/", signed, 1001.0) is None
        assert doorkeeper.refusal("GET", "/tree/", signed, 1002.0) == "this request was made before"
        late = sign(KEY, "GET", "/tree/", 1000.0)
        assert "set the clocks" in str(doorkeeper.refusal("GET", "/tree/", late, 1001.0 + CLOCKS_APART_S))
        other = sign(KEY, "GET", "/tree/", 1000.0)
        assert "another key" in str(doorkeeper.refusal("DELETE", "/tree/", other, 1000.0))
        assert "not signed" in str(doorkeeper.refusal("GET", "/tree/", "", 1000.0))

    def test_the_key_is_never_sent(self) -> None:
        assert "a shared secret" not in sign(KEY, "GET", "/", 0.0)
        assert KEY.hex() not in sign(KEY, "GET", "/", 0.0)


class TestOpening:
    def test_folders_urls_and_peers(self, tmp_path: Path) -> None:
        keys = Keys("a shared secret")
        assert isinstance(open_place(str(tmp_path), keys), FolderStore)
        assert isinstance(open_place(f"file://{tmp_path}", keys), FolderStore)
        assert isinstance(open_place("memory://x", keys), RemoteStore)
        peer = open_place("rack1=http://10.0.0.1:7077", keys)
        assert isinstance(peer, PeerStore)
        assert (peer.host, peer.name) == ("rack1", "http://10.0.0.1:7077")

    def test_peers_need_a_key(self) -> None:
        with pytest.raises(BadParameter, match="shared key"):
            open_place("http://localhost:1", Keys())

    def test_a_place_named_twice(self, tmp_path: Path) -> None:
        with pytest.raises(BadParameter, match="named twice"):
            open_places([str(tmp_path), str(tmp_path)], Keys())

    def test_unknown_urls(self) -> None:
        with pytest.raises(BadParameter, match="cannot be opened"):
            open_place("gopher://x/y", Keys())

    def test_credentials_are_not_shown(self) -> None:
        assert without_credentials("sftp://user:secret@host/a/b?token=x") == "sftp://host/a/b"
        assert "some words" not in repr(Keys("some words"))
