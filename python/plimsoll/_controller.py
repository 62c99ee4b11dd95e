"""Congestion controllers in Python."""

from __future__ import annotations

from typing import ClassVar

from ._plimsoll import Cut, Window


class Controller:
    """A congestion controller: one object for each end of a connection, which sees the ACKs of that end.

    A scenario names it by ``transport.kind = "NAME"``, and the keys of its table ``transport.NAME`` are the arguments
    of the class; arguments that it does not take raise ``ScenarioError`` before the run. Windows are rounded to whole
    bytes. It has neither a clock nor random numbers of its own, so that a run stays a function of scenario and seed. An
    exception ends the run, and the call that ran it raises it.

    Two methods are called if a class has them, for each ACK of new data: ``on_ack(window, ack)`` takes note of it, and
    ``grow(window, ack)`` opens the window by assigning ``window.cwnd``, where the RFCs allow growth.
    """

    #: Part of the digest of a run: another version is another mechanism. Raise it when the behaviour changes.
    version: ClassVar[str] = "1"
    #: Whether ``on_ack`` assigns the window at every ACK, and ``grow`` is of no use.
    sets_window: bool = False

    def cut(self, window: Window, cut: Cut) -> float:
        """Return the window in bytes after a loss, a timeout or a mark; by default half of it."""
        return cut.base // 2
