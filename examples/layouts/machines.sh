# Machines made of network namespaces, for the layouts beside this file. Needs root and iproute2. Everything is in namespaces of its own and ends with
# the script: nothing of this machine is changed.

if [ "${LAYOUT_INSIDE:-}" = "" ]; then
  export LAYOUT_INSIDE=yes
  exec unshare --net --mount --pid --ipc --fork --kill-child --mount-proc -- bash "$0" "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BERTH=${BERTH:-node $here/../../src/main.ts}
work=$(mktemp -d)
trap 'umount --lazy /etc "$work/etc-work"; rm -rf "$work"' EXIT

# What is written to /etc and /run stays here.
mkdir "$work/etc-work"
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs "$work/etc-work"
mkdir "$work/etc-work/upper" "$work/etc-work/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$work/etc-work/upper,workdir=$work/etc-work/work" /etc
touch /etc/machine-id
ip link set lo up
ip link add br0 type bridge
ip address add 10.78.0.254/24 dev br0
ip link set br0 up

# machine NAME ADDRESS: with a network, and an id, of its own.
machine() {
  mkdir -p "/etc/netns/$1"
  echo -n "$1" | md5sum | cut -c1-32 >"/etc/netns/$1/machine-id"
  ip netns add "$1"
  ip link add "to-$1" type veth peer name eth0 netns "$1"
  ip link set "to-$1" master br0 up
  ip -n "$1" address add "$2/24" dev eth0
  ip -n "$1" link set eth0 up
  ip -n "$1" link set lo up
}

# on MACHINE COMMAND...
on() {
  ip netns exec "$@"
}

# logged NAME COMMAND...: in the background, until the end of the script.
logged() {
  local name=$1
  shift
  "$@" >"$work/$name.log" 2>&1 &
}

# said NAME WORDS: waits until the log has them.
said() {
  for _ in $(seq 600); do
    if grep -q "$2" "$work/$1.log"; then return 0; fi
    sleep 0.1
  done
  echo "$1 did not say \"$2\":" >&2
  cat "$work/$1.log" >&2
  exit 1
}

# server NAME ADDRESS OPTIONS...: a control plane that other machines reach, over TLS with the fleet's own authority.
server() {
  local name=$1 address=$2
  shift 2
  logged "server-$name" on "$name" $BERTH server --listen "$address:7070" --advertise-url "https://$address:7070" \
    --data-dir "$work/server-$name" "$@"
  said "server-$name" "listens on"
}

# operator NAME URLS: the command line of this script uses the admin token that the server NAME has made.
operator() {
  export BERTH_CONFIG=$work/contexts.yaml
  local fingerprint
  fingerprint=$(openssl x509 -noout -fingerprint -sha256 -in "$work/server-$1/ca.pem" | cut -d= -f2)
  $BERTH context set fleet --url "$2" --ca-fingerprint "$fingerprint" --token-file "$work/server-$1/operator.token" >/dev/null
  $BERTH host join-token create --uses 100 --expires 1h >"$work/join.token"
}

# agent NAME URL: the agent of the host NAME. Its guests are pretended.
agent() {
  BERTH_AGENT_DRIVERS=fake logged "agent-$1" on "$1" $BERTH agent join "$2" "@$work/join.token" --name "$1" --data-dir "$work/agent-$1"
  said "agent-$1" "registered"
}

# finish COMMAND...: runs it as the operator of the fleet, or a shell.
finish() {
  $BERTH image add tiny --source file:///tiny.img --format raw --cpus 1 --memory 64MiB >/dev/null
  berth() { $BERTH "$@"; }
  export BERTH
  export -f berth
  if [ $# -gt 0 ]; then
    "$@"
  else
    echo "the fleet runs: try \"berth host ls\" and \"berth run tiny --wait\"; \"exit\" ends it"
    bash -i
  fi
}
