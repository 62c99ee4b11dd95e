"""Controllers of the tests, in a module that other processes import."""

from __future__ import annotations

import plimsoll


class Vegas(plimsoll.Controller):
    """TCP Vegas: keeps a few packets in the queue, by the difference between the shortest round trip and this one."""

    def __init__(self, alpha: float = 2.0, beta: float = 4.0) -> None:
        self.alpha, self.beta = alpha, beta
        self.shortest = float("inf")
        self.round_end = 0

    def on_ack(self, window: plimsoll.Window, ack: plimsoll.Ack) -> None:
        self.shortest = min(self.shortest, ack.srtt_us or self.shortest)

    def grow(self, window: plimsoll.Window, ack: plimsoll.Ack) -> None:
        if ack.ack < self.round_end or ack.srtt_us is None:
            return
        self.round_end = ack.nxt
        queued = window.cwnd / window.segment * (1 - self.shortest / ack.srtt_us)
        if queued < self.alpha:
            window.cwnd += window.cwnd if window.in_slow_start else window.segment
        elif queued > self.beta:
            window.ssthresh = min(window.ssthresh, window.cwnd)
            window.cwnd = max(window.cwnd - window.segment, 2 * window.segment)


class Fixed(plimsoll.Controller):
    """Sets the window to so many segments."""

    sets_window = True

    def __init__(self, segments: int) -> None:
        self.segments = segments

    def on_ack(self, window: plimsoll.Window, ack: plimsoll.Ack) -> None:
        window.cwnd = self.segments * window.segment


class Broken(plimsoll.Controller):
    """Raises an exception in the middle of a run."""

    def on_ack(self, window: plimsoll.Window, ack: plimsoll.Ack) -> None:
        if ack.now_us > 30_000:
            raise ArithmeticError("no window")


class NoInteger(plimsoll.Controller):
    """Returns a window that is none."""

    def grow(self, window: plimsoll.Window, ack: plimsoll.Ack) -> None:
        window.cwnd = window.cwnd + 0.5  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
