"""Errors that name the parameter, the value and the remedy."""

from __future__ import annotations


class HeadgateError(Exception):
    """Anything Headgate raises on purpose."""


class BadParameter(HeadgateError, ValueError):
    """A parameter has a value that cannot be used.

    The message is one line: the parameter, the value, what is wrong with it and what to write instead.
    """

    def __init__(self, parameter: str, value: object, problem: str, remedy: str) -> None:
        # All four go to Exception.args, so that the error survives pickling.
        super().__init__(parameter, value, problem, remedy)
        self.parameter = parameter
        self.value = value
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.parameter}={self.value!r}: {self.problem}; {self.remedy}"


class UnsupportedSpark(HeadgateError, RuntimeError):
    """The Spark at hand lacks something that Headgate stands on."""


class StateError(HeadgateError, RuntimeError):
    """Durable state (a source's log, a saved model) cannot be read or written."""
