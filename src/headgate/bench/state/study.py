"""All that is measured without Spark."""

from __future__ import annotations

from dataclasses import asdict

from headgate.bench.race import Say
from headgate.bench.state.coding import code_times, speed
from headgate.bench.state.copies import at_size, together
from headgate.bench.state.programme import Programme, Results


def study(programme: Programme, say: Say) -> Results:
    return {
        "programme": asdict(programme),
        "speed": speed(programme, say),
        "code": code_times(programme, say),
        "sizes": [at_size(programme, size, say) for size in programme.sizes_mb],
        "instances": [together(programme, count, say) for count in programme.instances],
    }
