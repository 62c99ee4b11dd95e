"""What the tests share: a network that is simulated in milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

import plimsoll

SMALL: dict[str, Any] = {
    "version": 1,
    "title": "small",
    "run": {"duration": "200ms", "warmup": "20ms"},
    "topology": {"kind": "rack", "hosts": 4, "rate": "1Gbps", "delay": "5us"},
    "port": {"switch": {"buffer": "100 packets"}},
    "workload": {
        "small": {"kind": "rpc", "request": "100B", "response": "900B", "load": "8Mbps"},
        "background": {"kind": "transfer", "size": "1MB", "load": 0.3},
    },
    "variant": {
        "TCP": {"transport": {"kind": "tcp"}},
        "DCTCP": {"transport": {"kind": "dctcp"}, "port": {"switch": {"ecn": {"threshold": "20 packets"}}}},
    },
    "observe": {"queue": {"client": {"port": "client", "every": "1ms"}}},
}


@pytest.fixture(scope="session")
def small() -> dict[str, Any]:
    return SMALL


@pytest.fixture(scope="session")
def result() -> plimsoll.Result:
    return plimsoll.run(SMALL, progress=False)


@pytest.fixture(scope="session")
def swept() -> plimsoll.Result:
    return plimsoll.sweep(SMALL, {"workload.background.load": [0.2, 0.4]}, progress=False)
