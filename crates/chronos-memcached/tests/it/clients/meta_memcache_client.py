"""meta-memcache: argument 1 is host, 2 the port."""
import sys

from meta_memcache import CacheClient, Key, ServerAddress, connection_pool_factory_builder

client = CacheClient.cache_client_from_servers(
    servers=[ServerAddress(host=sys.argv[1], port=int(sys.argv[2]))],
    connection_pool_factory_fn=connection_pool_factory_builder(recv_timeout=20, connection_timeout=20),
)
assert client.set(key=Key("key"), value="value", ttl=100)
assert client.get(key=Key("key")) == "value"
assert client.get(key=Key("none")) is None
value, token = client.get_cas(key=Key("key"))
assert value == "value" and client.set(key=Key("key"), value="new", ttl=100, cas_token=token)
assert not client.set(key=Key("key"), value="newer", ttl=100, cas_token=token)
assert client.get(key=Key("clé with spaces, in base64")) is None
assert client.set(key=Key("clé with spaces, in base64"), value=b"bytes", ttl=100)
assert client.get(key=Key("clé with spaces, in base64")) == b"bytes"
assert client.delta(key=Key("number"), delta=5, refresh_ttl=100) in (None, 0, False)
assert client.delta_initialize_and_get(key=Key("number"), delta=1, initial_value=10, initial_ttl=100) == 10
assert client.delta_and_get(key=Key("number"), delta=5) == 15
many = [Key(f"many-{number}") for number in range(100)]
for number, key in enumerate(many):
    assert client.set(key=key, value=number, ttl=100)
assert client.multi_get(keys=many) == {key: number for number, key in enumerate(many)}
assert client.touch(key=Key("key"), ttl=50)
assert client.delete(key=Key("key")) and client.get(key=Key("key")) is None
print("ok")
