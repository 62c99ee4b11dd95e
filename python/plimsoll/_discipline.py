"""Queue disciplines in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from ._plimsoll import Link, Packet


class Discipline(ABC):
    """A queue discipline: one object for each port, which decides which packet is sent next and which are dropped.

    A scenario gives it to ports by ``port.TIER.discipline.NAME = {...}``, and the keys of that table are the arguments
    of the class. It has neither a clock nor random numbers of its own, so that a run stays a function of scenario and
    seed. An exception ends the run, and the call that ran it raises it; so does a method that returns a packet that
    does not wait.

    The simulator keeps the packets and counts them: the port's ``buffer`` limits how many wait, and ``ecn`` marks them,
    as under any discipline.
    """

    #: Part of the digest of a run: another version is another mechanism. Raise it when the behaviour changes.
    version: ClassVar[str] = "1"

    #: The link on which the port sends; known in ``__init__``.
    link: Link

    @abstractmethod
    def enqueue(self, packet: Packet, now_us: float) -> Iterable[Packet] | None:
        """Add a packet. Return the packets that are dropped for it, which may include it; None if there are none."""

    @abstractmethod
    def dequeue(
        self, now_us: float, paused: tuple[int, ...]
    ) -> Packet | tuple[Packet | None, Iterable[Packet]] | None:
        """Remove and return the packet that is sent next; its priority must not be one of ``paused``.

        A pair is that packet and those that are dropped instead, as by CoDel. Called only while packets wait. None, for
        no packet, is allowed only if no packet is left or a priority is paused.
        """
