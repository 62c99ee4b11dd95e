"""The compiled module. Its classes and functions are used by the package, which has the forms for users."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

__all__ = [
    "Ack",
    "Cancelled",
    "Compared",
    "Cut",
    "DeadlockError",
    "DefectError",
    "Lines",
    "Link",
    "ModelError",
    "ObjectiveError",
    "Outcomes",
    "Packet",
    "PlimsollError",
    "RunDirectoryError",
    "RunError",
    "Scenario",
    "ScenarioError",
    "StudyError",
    "Table",
    "TooLargeError",
    "Window",
    "answer",
    "built_in",
    "compare",
    "line",
    "load",
    "main",
    "merge",
    "reproduce",
    "run",
    "run_links",
    "schedule",
    "version",
]
version: Final[str]

_Point = tuple[str, list[tuple[str, str]], int, int, str, str]
_Outcome = tuple[str, list[tuple[str, str]], int, int, str]
_Report = Callable[[int, int, float, int, str], bool | None]

_Mechanism = tuple[str, str, Callable[..., object]]
_Mechanisms = tuple[Sequence[_Mechanism], Sequence[_Mechanism]]

@final
class Window:
    """The congestion window of one end of a connection, in bytes. Assigned numbers are rounded to whole bytes."""

    @property
    def cwnd(self) -> int:
        """The congestion window."""

    @cwnd.setter
    def cwnd(self, value: float) -> None: ...
    @property
    def ssthresh(self) -> int:
        """The slow start threshold."""

    @ssthresh.setter
    def ssthresh(self, value: float) -> None: ...
    @property
    def segment(self) -> int:
        """The payload of a full segment."""

    @property
    def max_window(self) -> int:
        """The limit that the sender caps ``cwnd`` at."""

    @property
    def initial_window(self) -> int:
        """The window of a new connection."""

    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below the slow start threshold."""

@final
class Ack:
    """An ACK of new data; times are in microseconds."""

    @property
    def now_us(self) -> float:
        """The arrival time since the start of the run, in microseconds."""

    @property
    def acked(self) -> int:
        """The number of bytes that it acknowledges for the first time."""

    @property
    def ack(self) -> int:
        """The acknowledgement number: all bytes below it have arrived."""

    @property
    def nxt(self) -> int:
        """The number of the next byte to send; an ACK at or above it ends the round that is in flight now."""

    @property
    def ece(self) -> bool:
        """Whether it carries the ECN echo."""

    @property
    def rtt_us(self) -> float | None:
        """The round-trip time that it measured, in microseconds; None if it measured none."""

    @property
    def srtt_us(self) -> float | None:
        """The smoothed round-trip time in microseconds; None before the first sample."""

    @property
    def window_limited(self) -> bool:
        """Whether the window limits the sender, not the application (RFC 7661, section 4.3).

        Computed where ``sets_window`` is true; otherwise true, since ``grow`` is only called if it is.
        """

@final
class Cut:
    """The reason for a smaller window: ``cause`` is loss, timeout or ecn."""

    @property
    def now_us(self) -> float:
        """The time since the start of the run, in microseconds."""

    @property
    def cause(self) -> str:
        """The cause: ``loss``, ``timeout`` or ``ecn``."""

    @property
    def base(self) -> int:
        """The number of bytes to take a share of: for a loss those of ``transport.cut_from``, for a mark the window."""

    @property
    def una(self) -> int:
        """The number of the first byte that is not acknowledged."""

    @property
    def srtt_us(self) -> float | None:
        """The smoothed round-trip time in microseconds; None before the first sample."""

@final
class Link:
    """The link on which a port sends."""

    @property
    def rate_bps(self) -> int: ...
    @property
    def delay_us(self) -> float:
        """The propagation delay."""

    @property
    def from_host(self) -> int | None:
        """The number of the host whose NIC sends on it; None at a switch."""

    @property
    def to_host(self) -> int | None:
        """The number of the host that it leads to; None if it leads to a switch."""

@final
class Packet:
    """A packet that waits at a port. ``number`` counts the packets that have come to the port."""

    @property
    def number(self) -> int: ...
    @property
    def size(self) -> int:
        """The number of bytes on the wire."""

    @property
    def payload(self) -> int:
        """The number of payload bytes; 0 for an ACK."""

    @property
    def connection(self) -> int: ...
    @property
    def from_server(self) -> bool:
        """Whether the packet goes from the server of its connection to the client."""

    @property
    def source(self) -> int:
        """The number of the host that sends it."""

    @property
    def destination(self) -> int:
        """The number of the host that it is addressed to."""

    @property
    def priority(self) -> int:
        """The 802.1p priority, 0 to 7."""

    @property
    def rank(self) -> int:
        """By ``host.rank``: the bytes that its sender has still to send of the message, or 7 - priority; 0 for ACKs."""

    @property
    def ecn_capable(self) -> bool: ...
    @property
    def marked(self) -> bool:
        """Whether the packet was marked when it came."""

    @property
    def arrived_us(self) -> float: ...
    def mark(self) -> None:
        """Mark the packet (ECN) when it is sent, if its transport is capable of that."""

class PlimsollError(Exception): ...

class ScenarioError(PlimsollError):
    file: str | None
    line: int | None
    column: int | None
    key: str | None
    value: str | None
    allowed: str | None
    hint: str | None
    message: str
    notes: list[str]
    errors: list[dict[str, Any]]

class RunError(PlimsollError): ...

class DeadlockError(RunError):
    at: float
    links: list[str]

class TooLargeError(RunError):
    key: str

class Cancelled(RunError): ...
class RunDirectoryError(PlimsollError): ...
class ObjectiveError(PlimsollError): ...
class ModelError(PlimsollError): ...
class StudyError(PlimsollError): ...
class DefectError(PlimsollError): ...

@final
class Scenario:
    @staticmethod
    def load(
        path: str,
        set: list[str],
        seed: int | None,
        replicates: int | None,
        mechanisms: _Mechanisms,
        files: Mapping[str, str],
    ) -> Scenario: ...
    @staticmethod
    def parse(
        name: str,
        text: str,
        folder: str,
        set: list[str],
        seed: int | None,
        replicates: int | None,
        mechanisms: _Mechanisms,
        files: Mapping[str, str],
    ) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def self_contained(self) -> str: ...
    @property
    def objectives(self) -> list[tuple[str, str]]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def points(self) -> list[_Point]: ...
    def recorded(self) -> str: ...
    def show(self, index: int) -> str: ...

@final
class Table:
    """Records in columns, which pandas, Polars, PyArrow and DuckDB take by Arrow's C interface."""

    @property
    def column_names(self) -> list[str]: ...
    @property
    def num_rows(self) -> int: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with the columns, by pyarrow where that is installed."""

@final
class Outcomes:
    @property
    def path(self) -> str | None: ...
    @property
    def missing(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def scenario(self) -> str: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def digest(self) -> str: ...
    @property
    def points(self) -> list[_Outcome]: ...
    @property
    def verdicts(self) -> list[str]: ...
    def summary_json(self) -> str: ...
    def curves_json(self) -> str: ...
    def measure(self, text: str) -> list[tuple[float | None, tuple[float, float] | None, int]]: ...
    def table_text(self, format: str, width: int) -> str: ...
    def report_html(self) -> str: ...
    def table(self, kind: str) -> Table: ...

@final
class Compared:
    @property
    def verdicts(self) -> list[str]: ...
    def summary_json(self) -> str: ...
    def table_text(self, format: str, width: int) -> str: ...

@final
class Lines:
    @property
    def report_html(self) -> str: ...
    @property
    def sentences(self) -> list[str]: ...
    @property
    def overloaded(self) -> list[str]: ...
    def json(self) -> str: ...
    def table_text(self, format: str, width: int) -> str: ...

def main(words: list[str]) -> int: ...
def answer(model: str, options: str) -> str: ...
def built_in() -> list[str]: ...
def run(
    scenario: Scenario,
    variants: list[str],
    shard: str | None,
    threads: int | None,
    memory_max: int | None,
    out: str | None,
    force: bool,
    command: str | None,
    submit: Callable[[int, list[str]], object] | None,
    progress: _Report | None,
) -> Outcomes: ...
def run_links(scenario: Scenario, point: int, tasks: list[str]) -> list[str]: ...
def load(path: str) -> Outcomes: ...
def merge(out: str, parts: list[str]) -> None: ...
def compare(all: list[Outcomes], names: list[str]) -> Compared: ...
def line(
    scenario: Scenario,
    slo: list[str],
    over: str | None,
    at: str | None,
    within: str | None,
    precision: float,
    replicates_max: int,
    messages: int | None,
    threads: int | None,
    memory_max: int | None,
    out: str | None,
    force: bool,
    progress: _Report | None,
) -> Lines: ...
def reproduce(
    study: str,
    quick: bool,
    only: list[str],
    threads: int | None,
    seed: int,
    servers: str | None,
    out: str | None,
    progress: _Report | None,
) -> tuple[str, tuple[int, int, int], dict[str, str]]: ...
def schedule(
    demand: list[list[int]], scheduler: str, circuit_rate: str, packet_rate: str, night: str, window: str
) -> tuple[list[tuple[int, list[int | None]]], list[list[int]], int, int]: ...
