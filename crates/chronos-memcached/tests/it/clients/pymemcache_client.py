"""pymemcache over TCP or a UNIX socket: argument 1 is host:port or a path."""
import sys

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheClientError, MemcacheIllegalInputError

place = sys.argv[1]
client = Client(place if place.startswith("/") else tuple([place.rsplit(":", 1)[0], int(place.rsplit(":", 1)[1])]),
                default_noreply=False, timeout=20)
assert client.version() == b"1.6.18"
client.flush_all()
assert client.set("key", b"value") and client.get("key") == b"value"
assert client.get("none") is None and client.get("none", 5) == 5
assert client.add("key", b"x") is False and client.replace("key", b"new") is True
assert client.append("key", b"-after") and client.prepend("key", b"before-")
value, token = client.gets("key")
assert value == b"before-new-after"
assert client.cas("key", b"1", token) is True and client.cas("key", b"2", token) is False
assert client.cas("none", b"2", token) is None
assert client.incr("key", 41) == 42 and client.decr("key", 2) == 40 and client.incr("none", 1) is None
assert client.touch("key", 100) and not client.touch("none", 100)
many = {f"many-{number}": b"x" * number for number in range(300)}
assert client.set_many(many) == []
assert client.get_many(list(many) + ["none"]) == many
assert set(client.gets_many(["many-1", "many-2"])) == {"many-1", "many-2"}
assert client.delete("key") and not client.delete("key")
big = b"b" * 900_000
assert client.set("big", big) and client.get("big") == big
try:
    client.set("big", b"b" * 2_000_000)
    raise AssertionError("too large")
except Exception as error:
    assert "too large" in str(error), error
assert client.get("big") is None
try:
    client.set("key with space", b"x")
    raise AssertionError("spaces")
except MemcacheIllegalInputError:
    pass
client.set("soon", b"x", expire=-1)
assert client.get("soon") is None
stats = client.stats()
assert stats[b"version"] == b"1.6.18" and stats[b"curr_items"] >= 300, stats
assert client.stats("settings")[b"maxbytes"] and client.stats("items") and client.stats("slabs")
client.flush_all()
assert client.get("many-1") is None
client.quit()
print("ok")
