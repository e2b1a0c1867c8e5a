"""From what a user writes to a place: ``[label=]URL``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from headgate.errors import BadParameter
from headgate.state.stores.folder import FolderStore
from headgate.state.stores.peer import PeerStore
from headgate.state.stores.port import FragmentStore
from headgate.state.stores.remote import RemoteStore
from headgate.state.tags import Keys
from headgate.state.urls import local_path, open_filesystem, without_credentials

_LABEL = re.compile(r"([\w.-]+)=(.+)", re.DOTALL)


def open_places(texts: Sequence[str], keys: Keys) -> list[FragmentStore]:
    """All of them; two of one name would be one place that is counted twice."""
    stores = [open_place(text, keys) for text in texts]
    names = [store.name for store in stores]
    for name in names:
        if names.count(name) > 1:
            raise BadParameter("places", name, "is named twice", "name every place once")
    return stores


def open_place(text: str, keys: Keys) -> FragmentStore:
    """A folder, a peer (http://host:port) or any URL that fsspec knows; a label says which places fail together."""
    labelled = _LABEL.fullmatch(text)
    host, url = (labelled[1], labelled[2]) if labelled else (None, text)
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc not in ("", "localhost"):
        raise BadParameter("place", text, "a file URL names no host", "write file:///a/folder")
    if (folder := local_path(url)) is not None:
        return FolderStore(folder, host=host)
    if parts.scheme == "http":
        if not keys.secret:
            raise BadParameter("place", text, "peers need a shared key", "give the file that holds it: --key-file FILE")
        return PeerStore(url, keys.peers, host=host)
    name = without_credentials(url)
    return RemoteStore(*open_filesystem(url, "place"), name, host or name)
