"""Queue disciplines of the tests, in a module that other processes import."""

from __future__ import annotations

import heapq
from collections import deque

import plimsoll


class Fifo(plimsoll.Discipline):
    """First come, first served."""

    def __init__(self) -> None:
        self.packets: deque[plimsoll.Packet] = deque()

    def enqueue(self, packet: plimsoll.Packet, now_us: float) -> None:
        self.packets.append(packet)

    def dequeue(self, now_us: float, paused: tuple[int, ...]) -> plimsoll.Packet | None:
        return None if self.packets[0].priority in paused else self.packets.popleft()


class ShortestFirst(plimsoll.Discipline):
    """The message with the fewest bytes to send goes first; a full queue drops a packet of the longest."""

    def __init__(self, packets_max: int = 1_000_000) -> None:
        self.packets_max = packets_max
        self.packets: list[tuple[int, int, plimsoll.Packet]] = []

    def enqueue(self, packet: plimsoll.Packet, now_us: float) -> list[plimsoll.Packet] | None:
        heapq.heappush(self.packets, (packet.rank, packet.number, packet))
        if len(self.packets) <= self.packets_max:
            return None
        longest = max(self.packets)
        self.packets.remove(longest)
        heapq.heapify(self.packets)
        return [longest[2]]

    def dequeue(self, now_us: float, paused: tuple[int, ...]) -> plimsoll.Packet | None:
        return heapq.heappop(self.packets)[2]


class MarkAll(Fifo):
    """Marks the packets that have waited longer than so many microseconds."""

    def __init__(self, longer_than_us: float) -> None:
        super().__init__()
        self.longer_than_us = longer_than_us

    def dequeue(self, now_us: float, paused: tuple[int, ...]) -> plimsoll.Packet | None:
        packet = super().dequeue(now_us, paused)
        if packet is not None and now_us - packet.arrived_us > self.longer_than_us:
            packet.mark()
        return packet


class DropsLate(Fifo):
    """Drops the packets that have waited longer than the link takes for so many full ones, when they would be sent."""

    def __init__(self, packets: int) -> None:
        super().__init__()
        assert self.link.from_host is None and self.link.delay_us > 0
        self.longest_us = packets * 1500 * 8 / self.link.rate_bps * 1e6

    def dequeue(
        self, now_us: float, paused: tuple[int, ...]
    ) -> tuple[plimsoll.Packet | None, list[plimsoll.Packet]]:
        late = []
        while self.packets and now_us - self.packets[0].arrived_us > self.longest_us:
            late.append(self.packets.popleft())
        return (self.packets.popleft() if self.packets else None), late


class Wrong(Fifo):
    """Goes wrong in the way that its argument names, in the middle of a run."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.sent: plimsoll.Packet | None = None

    def enqueue(self, packet: plimsoll.Packet, now_us: float) -> None:
        if self.way == "raises" and now_us > 30_000:
            raise ArithmeticError("no queue")
        super().enqueue(packet, now_us)

    def dequeue(self, now_us: float, paused: tuple[int, ...]) -> plimsoll.Packet | None:
        if self.sent is not None:
            if self.way == "sends twice":
                return self.sent
            if self.way == "sends nothing":
                return None
            if self.way == "sends a number":
                return 3  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
            if self.way == "sends a triple":
                return None, [], 3  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
            if self.way == "drops twice":
                return None, [self.sent]  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
        self.sent = super().dequeue(now_us, paused)
        return self.sent


class Paused(Fifo):
    """Sends packets whose priority is paused."""

    def dequeue(self, now_us: float, paused: tuple[int, ...]) -> plimsoll.Packet | None:
        return self.packets.popleft()
