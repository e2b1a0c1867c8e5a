"""All places of a backup, asked at once: who answers, and what is there."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headgate.state.keys import Line, PackId, parse_fence, parse_key
from headgate.state.stores.port import FragmentStore

T = TypeVar("T")

PATIENCE_S = 30.0
"""A place that has not answered a small question by then is left out."""


@dataclass(slots=True)
class Answers(Generic[T]):
    """What each place said; by the places' names."""

    given: dict[str, T] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """Those that failed or did not answer in time, and why."""


class Places:
    """The stores of a backup, by name."""

    def __init__(self, stores: Sequence[FragmentStore]) -> None:
        self.stores = {store.name: store for store in stores}
        self._hanging = Counter[str]()
        """Questions that were given up and not answered since."""

    def __len__(self) -> int:
        return len(self.stores)

    @property
    def majority(self) -> int:
        """Any two groups of so many places have one in common."""
        return len(self.stores) // 2 + 1

    @property
    def hosts(self) -> dict[str, str]:
        return {name: store.host for name, store in self.stores.items()}

    def ask(
        self, question: Callable[[FragmentStore], T], of: Iterable[str] | None = None, patience_s: float = PATIENCE_S
    ) -> Answers[T]:
        """The question to all places, or to some, in parallel; a place that hangs holds up nobody for long."""
        names = list(self.stores if of is None else of)
        answers, ready = Answers[T](), threading.Condition()
        given_up = set[str]()

        def ask_one(name: str) -> None:
            try:
                given, failure = question(self.stores[name]), None
            except Exception as error:  # whatever a driver raises, the others have answered
                given, failure = None, f"{type(error).__name__}: {error}"
            with ready:
                if name in given_up:
                    self._hanging[name] -= 1
                elif failure is not None:
                    answers.silent[name] = failure
                else:
                    answers.given[name] = given  # type: ignore[assignment]
                ready.notify()

        for name in names:
            if self._hanging[name] > 0:  # a thread for every question would pile up
                answers.silent[name] = "has not answered an earlier question yet"
                continue
            threading.Thread(target=ask_one, args=(name,), name=f"ask {name}", daemon=True).start()
        with ready:
            ready.wait_for(lambda: len(answers.given) + len(answers.silent) == len(names), timeout=patience_s)
            for name in names:
                if name not in answers.given and name not in answers.silent:
                    answers.silent[name] = f"no answer within {patience_s:g} s"
                    given_up.add(name)
                    self._hanging[name] += 1
        return answers

    def delete(self, keys: Mapping[str, Sequence[str]]) -> None:
        """These keys at these places. What a place does not delete now is in nobody's way."""

        def delete_all(store: FragmentStore) -> None:
            for key in keys[store.name]:
                store.delete(key)

        self.ask(delete_all, keys)

    def survey(self, prefix: str = "") -> Survey:
        """Everything below a folder of the tree, at all places."""
        answers = self.ask(lambda store: store.find(prefix))
        survey = Survey(answers.silent)
        for name, keys in answers.given.items():
            for key, length in keys.items():
                survey.add(name, key, length)
        return survey


@dataclass(slots=True)
class Survey:
    """Which place has what."""

    silent: dict[str, str] = field(default_factory=dict)
    manifests: dict[Line, dict[PackId, list[str]]] = field(default_factory=lambda: defaultdict(dict))
    fragments: dict[Line, dict[PackId, dict[int, dict[str, int]]]] = field(default_factory=lambda: defaultdict(dict))
    """By pack and index, the places that have the fragment and how long it is there."""
    fences: dict[str, dict[tuple[int, str], list[str]]] = field(default_factory=lambda: defaultdict(dict))
    """By the prefix of the line."""

    def holders(self, line: Line, pack: PackId, length: int) -> dict[int, list[str]]:
        """By index, the places that have the fragment in full length."""
        found = self.fragments.get(line, {}).get(pack, {})
        whole = {index: [name for name, size in at.items() if size == length] for index, at in sorted(found.items())}
        return {index: names for index, names in whole.items() if names}

    def add(self, place: str, key: str, length: int) -> None:
        found = parse_key(key)
        if found is None:
            prefix, _, rest = key.rpartition("/fence/")
            if prefix and (fence := parse_fence(rest)) is not None:
                self.fences[prefix].setdefault(fence, []).append(place)
        elif found.index is None:
            self.manifests[found.line].setdefault(found.pack, []).append(place)
        else:
            at = self.fragments[found.line].setdefault(found.pack, {})
            at.setdefault(found.index, {})[place] = length
