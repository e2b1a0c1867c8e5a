"""The code alone: how fast it is, and the paper's figures 23 to 25."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

import numpy as np

from headgate.bench.race import Say
from headgate.bench.state.programme import MB, Programme, Results
from headgate.core.galois import Matrix
from headgate.state.code import Code

RAWS, CHECKS, LOSSES = tuple(range(6, 17)), tuple(range(2, 9)), tuple(range(1, 9))
CODED_MB = 10
"""Size of the state in the paper's figures."""

STRIPES, CELL_BYTES = 40, 1 << 18
"""What each thread codes in a measurement of speed: 73 MB."""


def speed(programme: Programme, say: Say) -> Results:
    """MB of data per second, encoding and rebuilding three lost blocks of 7 + 3, on two threads."""
    found = {}
    for name, act in (("encode", _encode), ("decode", _decode)):
        found[name] = [_parallel_mb_s(act) for _ in range(programme.repeats)]
        say(f"{name}, two threads: {statistics.median(found[name]):,.0f} MB/s")
    return found


def _parallel_mb_s(act: Callable[[Code, list[Matrix]], object]) -> float:
    code, random = Code(7, 3), np.random.default_rng(1)
    stripes = [list(random.integers(0, 256, (7, CELL_BYTES), dtype=np.uint8)) for _ in range(2)]
    ready = threading.Barrier(3)

    def work(stripe: list[Matrix]) -> None:
        act(code, stripe)
        ready.wait()
        for _ in range(STRIPES):
            act(code, stripe)
        ready.wait()

    for stripe in stripes:
        threading.Thread(target=work, args=(stripe,), daemon=True).start()
    ready.wait()
    began_s = time.perf_counter()
    ready.wait()
    return 2 * STRIPES * 7 * CELL_BYTES / MB / (time.perf_counter() - began_s)


def _encode(code: Code, stripe: list[Matrix]) -> object:
    return code.encode(stripe)


def _decode(code: Code, stripe: list[Matrix]) -> object:
    """What is decoded does not matter to the time it takes: any seven blocks will do."""
    return code.rebuild(dict(enumerate(stripe, start=code.check)), range(code.raw))


def code_times(programme: Programme, say: Say) -> Results:
    """Milliseconds to encode 10 MB and to rebuild it, as in the paper."""
    return {
        "raw": [_coding(Code(raw, 3), 3, programme, say) | {"at": raw} for raw in RAWS],
        "check": [_coding(Code(8, check), check, programme, say) | {"at": check} for check in CHECKS],
        "lost": [_coding(Code(8, 8), lost, programme, say) | {"at": lost} for lost in LOSSES],
    }


def _coding(code: Code, lost: int, programme: Programme, say: Say) -> Results:
    cell = CODED_MB * MB // code.raw
    raw = list(np.random.default_rng(2).integers(0, 256, (code.raw, cell), dtype=np.uint8))
    everything = dict(enumerate([*raw, *code.encode(raw)]))
    kept = {index: block for index, block in everything.items() if index >= lost}
    encode, decode = [], []
    for _ in range(max(5, programme.repeats)):
        encode.append(milliseconds(lambda: code.encode(raw)))
        decode.append(milliseconds(lambda: code.rebuild(kept, range(code.raw))))
    say(f"code {code.raw} + {code.check}, {lost} lost: {min(encode):.1f} ms, back {min(decode):.1f} ms")
    return {"raw": code.raw, "check": code.check, "lost": lost, "encode_ms": encode, "decode_ms": decode}


def milliseconds(act: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    act()
    return (time.perf_counter() - began_s) * 1000
