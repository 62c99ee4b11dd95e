"""pylibmc: argument 1 is host, 2 the TCP port, 3 the UDP port."""
import sys

import pylibmc

host, tcp, udp = sys.argv[1:]
for binary in (False, True):
    client = pylibmc.Client([f"{host}:{tcp}"], binary=binary, behaviors={"cas": True, "tcp_nodelay": True})
    assert client.flush_all()
    assert client.set("key", "value") and client.get("key") == "value"
    assert client.add("key", "x") is False and client.replace("key", "new")
    assert client.set("text", b"b") and client.append("text", b"c") and client.prepend("text", b"a")
    assert client.get("text") == b"abc"
    value, token = client.gets("key")
    assert value == "new" and client.cas("key", 5, token)
    assert client.incr("key", 3) == 8 and client.decr("key") == 7
    assert client.set_multi({str(number): number for number in range(200)}) == []
    assert client.get_multi([str(number) for number in range(200)]) == {str(number): number for number in range(200)}
    assert client.delete("key") and client.get("key") is None
    assert client.touch("text", 100)
    (_, stats), = client.get_stats()
    assert stats["version" if "version" in stats else b"version"], stats
    client.set("big", b"x" * 900_000)
    assert client.get("big") == b"x" * 900_000

# libmemcached only sends over UDP, and hears nothing: what it sent must arrive in the end.
sender = pylibmc.Client([f"udp:{host}:{udp}"])
reader = pylibmc.Client([f"{host}:{tcp}"])
for _ in range(10_000):
    sender.set("by-udp", "arrived")
    if reader.get("by-udp") == "arrived":
        break
else:
    raise AssertionError("nothing came by UDP")
print("ok")
