"""Folders as users and Spark write them: a path, a file URL, or a URL that fsspec has a driver for."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from headgate.errors import BadParameter


def local_path(text: str) -> Path | None:
    """The folder on this machine that is meant; None if it is elsewhere."""
    parts = urlsplit(text)
    if parts.scheme not in ("", "file"):
        return None
    return Path(unquote(parts.path) if parts.scheme else text).expanduser()


def open_filesystem(url: str, parameter: str) -> tuple[Any, str]:
    """The driver, and the folder as it names it. Hadoop's s3a:// is what everybody else calls s3://."""
    import fsspec

    try:
        filesystem, root = fsspec.core.url_to_fs(url.replace("s3a://", "s3://", 1))
    except (ImportError, ValueError) as error:
        problem = f"cannot be opened ({error})"
        remedy = "install the driver it names, or write a folder or another URL"
        raise BadParameter(parameter, without_credentials(url), problem, remedy) from error
    return filesystem, str(root)


def without_credentials(url: str) -> str:
    """A URL as people may see it: no user, no password, no query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
