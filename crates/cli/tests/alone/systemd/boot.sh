# Boots systemd as process 1 of its own namespaces: boot.sh PLACE SYSTEMD PLIMSOLL REPOSITORY
# Of the host's files it sees /etc and /usr/bin through overlays in PLACE; /run, cgroups, BPF pins and the network are new.
place=$1 systemd=$2 plimsoll=$3 repository=$4
here=$repository/crates/cli/tests/alone/systemd

mount --make-rprivate /
mount -t proc proc /proc
mkdir "$place/files"
mount -t tmpfs tmpfs "$place/files"
overlay() {
  mkdir -p "$place/files$1/upper" "$place/files$1/work"
  mount -t overlay overlay -o "lowerdir=$1,upperdir=$place/files$1/upper,workdir=$place/files$1/work" "$1"
}
overlay /etc
overlay /usr/bin
mount -t tmpfs tmpfs /run

# A cgroup of its own is the root of what it sees.
group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/plimsoll-units-$(basename "$place")
mkdir "$group"
echo "$group" >"$place/cgroup"
echo $$ >"$group/cgroup.procs"

cp "$plimsoll" /usr/bin/plimsoll
mkdir -p /etc/plimsoll /run/systemd/system
cp "$here"/*.toml /etc/plimsoll/
mkdir /run/systemd/system/plimsoll-host@.service.d
printf '[Service]\nUMask=0000\n' >/run/systemd/system/plimsoll-host@.service.d/open.conf
cp "$repository"/deploy/systemd/*.service "$here"/units/* /run/systemd/system/
printf '[Manager]\nLogTarget=console\nLogLevel=notice\nShowStatus=no\n' >/etc/systemd/system.conf
printf 'PLACE=%s\nHERE=%s\n' "$place" "$here" >/run/places

exec unshare --cgroup sh -eu -c '
  umount -R /sys/fs/cgroup 2>/dev/null || true
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mount -t bpf bpf /sys/fs/bpf
  # No packets of IPv6 of its own accord, which have level 7.
  echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
  ip link set lo up
  ip link add eth0 type veth peer name peer0
  ip address add 10.9.8.1/24 dev eth0
  ip link set eth0 up
  ip link set peer0 up
  ip neighbour add 10.9.8.2 lladdr 02:00:00:00:00:02 dev eth0
  export container=plimsoll-test SYSTEMD_UNIT_PATH=/run/systemd/system
  exec "$0" --system --unit=check.target' "$systemd"
