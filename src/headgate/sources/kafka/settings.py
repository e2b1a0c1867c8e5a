"""The ``kafka.*`` options, from the names of Kafka's Java client, which Spark's users write, to librdkafka's.

Most have the same name in both. Here are those that differ, those that Spark decides itself, and which are secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from headgate.errors import BadParameter

Settings = dict[str, str]

DECIDED = {
    "key.deserializer": "keys are always binary: decode them in the query",
    "value.deserializer": "values are always binary: decode them in the query",
    "enable.auto.commit": "positions are kept in the query's checkpoint",
    "auto.offset.reset": "use startingOffsets",
    "interceptor.classes": "there is no Java here",
}
"""Spark's own source refuses these, too: they would break what it promises."""

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""The same thing under another name."""

MEANINGLESS = frozenset(
    {
        "max.poll.records", "default.api.timeout.ms", "group.protocol",
        "exclude.internal.topics",  # which topics are read is no setting of librdkafka's
        "ssl.truststore.type", "ssl.truststore.password", "ssl.keystore.type", "ssl.protocol",
        "ssl.enabled.protocols", "ssl.trustmanager.algorithm", "ssl.keymanager.algorithm",
    }
)  # fmt: skip
"""Of the Java client's inside, or read together with others below."""

_SECRET = re.compile(r"password|secret|jaas|token|credential|\.key$|key\.pem|oauthbearer\.config", re.IGNORECASE)
_JAAS = re.compile(r"\b(username|password)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)')")
_ESCAPED = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)")
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def is_secret(name: str) -> bool:
    """Whether a setting's value must never be shown."""
    return _SECRET.search(name) is not None


def shown(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings as they may appear in messages."""
    return {name: "***" if is_secret(name) else value for name, value in settings.items()}


def translate(given: Mapping[str, str]) -> Settings:
    """Settings for librdkafka; `given` has the names after ``kafka.``."""
    settings: Settings = {}
    for name, value in given.items():
        if name in DECIDED:
            raise BadParameter(f"kafka.{name}", _shown_value(name, value), "this cannot be set", DECIDED[name])
        if name not in MEANINGLESS:
            settings[RENAMED.get(name, name)] = value
    if "bootstrap.servers" not in settings:
        raise BadParameter(
            "kafka.bootstrap.servers", None, "the brokers are not named",
            'write .option("kafka.bootstrap.servers", "host:9092")',
        )  # fmt: skip
    if settings.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl.endpoint.identification.algorithm"] = "none"  # Java's way to say it
    _log_in(settings)
    _trust(settings, given)
    _certify(settings, given)
    return settings


def _shown_value(name: str, value: str) -> str:
    return "***" if is_secret(name) else value


def _log_in(settings: Settings) -> None:
    """Java's log-in line holds what librdkafka has as two settings."""
    jaas = settings.pop("sasl.jaas.config", None)
    if jaas is None:
        return
    found = {name: _unescaped(double or single) for name, double, single in _JAAS.findall(jaas)}
    if set(found) != {"username", "password"}:
        raise BadParameter(
            "kafka.sasl.jaas.config", "***", "only log-ins with username and password can be read from it",
            "write kafka.sasl.mechanism with librdkafka's own settings, such as kafka.sasl.oauthbearer.config",
        )  # fmt: skip
    settings["sasl.username"], settings["sasl.password"] = found["username"], found["password"]


def _unescaped(text: str) -> str:
    """As Java reads quoted text: control characters, octal numbers, and anything else as it stands."""
    return _ESCAPED.sub(lambda found: _meaning(found[1]), text)


def _meaning(escape: str) -> str:
    return chr(int(escape, 8)) if escape[0] in "01234567" else _CONTROL.get(escape, escape)


def _trust(settings: Settings, given: Mapping[str, str]) -> None:
    """Certificates to trust: PEM, the only form that librdkafka reads."""
    store = settings.pop("ssl.truststore.location", None)
    if store is None:
        return
    if given.get("ssl.truststore.type", "").upper() != "PEM" and not store.lower().endswith((".pem", ".crt")):
        raise BadParameter(
            "kafka.ssl.truststore.location", store, "Java's key stores cannot be read here",
            "export it: keytool -exportcert -rfc -keystore STORE -alias CA -file ca.pem, and name ca.pem as"
            " kafka.ssl.ca.location",
        )  # fmt: skip
    settings["ssl.ca.location"] = store


def _certify(settings: Settings, given: Mapping[str, str]) -> None:
    """The client's own certificate: PKCS#12 is read as it is, PEM under other names."""
    store = settings.get("ssl.keystore.location")
    if store is None:
        return
    kind = given.get("ssl.keystore.type", "").upper()
    if kind == "PEM" or store.lower().endswith(".pem"):
        del settings["ssl.keystore.location"]
        settings["ssl.certificate.location"] = settings["ssl.key.location"] = store
    elif kind == "JKS" or store.lower().endswith(".jks"):
        raise BadParameter(
            "kafka.ssl.keystore.location", store, "Java's own key stores cannot be read here",
            "convert it: keytool -importkeystore -srckeystore STORE -destkeystore store.p12 -deststoretype PKCS12",
        )  # fmt: skip
