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


class Fraction(plimsoll.Controller):
    """Additive increase by arithmetic that gives fractions of a byte."""

    def __init__(self, gain: float = 1.0) -> None:
        if gain <= 0:
            raise ValueError(f"gain={gain}: expected more than 0")
        self.gain = gain

    def grow(self, window: plimsoll.Window, ack: plimsoll.Ack) -> None:
        window.cwnd += self.gain * window.segment * window.segment / window.cwnd

    def cut(self, window: plimsoll.Window, cut: plimsoll.Cut) -> float:
        return cut.base * 0.7


class NoNumber(plimsoll.Controller):
    """Computes a window that is none."""

    def __init__(self, window: object = float("nan")) -> None:
        self.window = window

    def grow(self, window: plimsoll.Window, ack: plimsoll.Ack) -> None:
        window.cwnd = self.window  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
