# What is asked of the units, one step after the other; the first that fails ends it.
exec >"$PLACE/report" 2>&1
trap 'code=$?; journal; systemctl --no-block exit $code' EXIT
journal() {
  systemctl --no-pager --plain list-units --failed || true
}
step() {
  echo "step: $*"
}
# sent POLICY LEVEL: packets that have left.
sent() {
  plimsoll host status -j "$1" | python3 -c "import json, sys
[policy] = json.load(sys.stdin)
print(policy['levels'][$2]['passed_packets'])"
}
# moves POLICY LEVEL: at least ten packets leave in a while, in which a sender hands over fifty.
moves() {
  before=$(sent "$1" "$2")
  sleep 0.5
  after=$(sent "$1" "$2")
  echo "policy $1, level $2: $before, then $after"
  [ "$after" -ge $((before + 10)) ]
}

systemctl start sender.service
systemctl start plimsoll-host@check.service
step a policy is applied by its unit
modes=$(stat -c %a /run/systemd/system/sender.service.d /run/systemd/system/sender.service.d/*.conf | tr '\n' ' ')
echo "modes $modes"
[ "$modes" = "755 644 " ]
step nobody else may write what it has told systemd to run
moves check 7
step what a running unit sends has its level

systemctl restart sender.service
moves check 7
step so has what it sends after a restart

systemctl stop sender.service
systemctl start late.service
moves check 7
step and what a unit sends that ran not yet

systemctl start plimsoll-metrics.service
python3 -c 'import time, urllib.request
for attempt in range(50):
    try:
        text = urllib.request.urlopen("http://127.0.0.1:9464/metrics").read().decode()
        break
    except OSError:
        time.sleep(0.1)
print([line for line in text.splitlines() if line.startswith("plimsoll_") and "level=\"7\"" in line])'
step metrics are served to this host

plimsoll host status check
systemctl stop plimsoll-host@check.service
[ ! -e /run/plimsoll/host/check ]
[ ! -e /sys/fs/bpf/plimsoll/check ]
[ ! -e /run/systemd/system/sender.service.d ]
step the policy is taken back with its unit

# Both have been started while systemd gave them the level; the limiter of another policy sees what they send now.
systemctl start plimsoll-host@limiter.service sender.service
moves limiter 0
[ "$(sent limiter 7)" = 0 ]
step no unit has a level any more

if systemctl start plimsoll-host@wrong.service; then
  exit 1
fi
step a policy that is wrong fails with its unit

# filter_has RATE: soon.
filter_has() {
  for attempt in $(seq 600); do
    if tc qdisc show dev peer0 | grep -q "^qdisc tbf .* rate $1 "; then
      return
    fi
    sleep 0.1
  done
  tc qdisc show dev peer0
  return 1
}
systemctl start plimsoll-host@pacer.service
filter_has 1Gbit
systemctl start plimsoll-pace@pacer.service
filter_has 10Mbit
step "a filter has the pacer's rate while its unit runs"
systemctl stop plimsoll-pace@pacer.service
filter_has 1Gbit
step "the link's when it has been stopped"
systemctl start plimsoll-pace@pacer.service
filter_has 10Mbit
systemctl stop plimsoll-host@pacer.service
[ "$(systemctl show --property=ActiveState --value plimsoll-pace@pacer.service)" = inactive ]
[ -z "$(tc qdisc show dev peer0 root | grep htb)" ]
step and the unit ends with its policy
