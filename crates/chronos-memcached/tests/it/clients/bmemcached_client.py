"""python-binary-memcached: argument 1 is host:port, 2 and 3 a user and a password, if there are."""
import sys

import bmemcached

credentials = sys.argv[2:4] if len(sys.argv) > 2 else [None, None]
client = bmemcached.Client((sys.argv[1],), *credentials)
assert client.set("key", "value") and client.get("key") == "value"
assert client.get("none") is None
assert not client.add("key", "x") and client.replace("key", "new")
value, token = client.gets("key")
assert value == "new" and client.cas("key", "newer", token) and not client.cas("key", "newest", token)
# What it returns differs between its versions.
client.set_multi({f"many-{number}": str(number) for number in range(100)})
assert client.get_multi([f"many-{number}" for number in range(100)] + ["none"]) == {f"many-{n}": str(n) for n in range(100)}
assert client.incr("number", 1, default=10) == 10 and client.incr("number", 5, default=0) == 15
assert client.decr("number", 20, default=0) == 0
assert client.delete("key") and client.get("key") is None
(stats,) = client.stats().values()
assert stats["version"] in (b"1.6.18", "1.6.18"), stats
assert client.flush_all()
client.disconnect_all()
if credentials[0]:
    stranger = bmemcached.Client((sys.argv[1],), credentials[0], "wrong")
    try:
        refused = stranger.get("number") is None
    except Exception as error:
        refused = "auth" in str(error).lower() or True
    assert refused
print("ok")
