#!/usr/bin/env bash
# A home agent and a mobile node with two links, in network namespaces of this process: a download goes on while the mobile node
# moves from one link to the other. Nothing of it is left when the script ends, and nothing outside is touched. `careof-agent try` does
# the same by itself; here every step is a command to be read.
#
#   examples/try-it.sh                 as root, or as a user who may open /dev/net/tun and make user namespaces
#   AGENT=path/to/careof-agent examples/try-it.sh
#
#               192.0.2.1 home agent        198.51.100.0/24
#    web server ───── home ───────── net ──── careof-wifi ──── mobile node 192.0.2.10
#    192.0.2.1:8080                    └───── careof-lte ──────┘
#                                            203.0.113.0/24
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
AGENT=${AGENT:-$(command -v careof-agent || echo "$here/../.venv/bin/careof-agent")}

fail() { printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }

for program in ip curl python3 unshare sha256sum "$AGENT"; do
  command -v "$program" >/dev/null || fail "there is no $program" "install it (iproute2, curl), or build careof: make setup"
done

# Everything below happens in namespaces that end with this process.
if [[ ${INSIDE:-} != yes ]]; then
  [[ -w /dev/net/tun ]] || fail "/dev/net/tun cannot be opened" "run this as root, or: sudo chmod a+rw /dev/net/tun"
  user=()
  ((EUID == 0)) || user=(--user --map-root-user)
  INSIDE=yes AGENT=$AGENT exec unshare "${user[@]}" --net --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

mount -t tmpfs tmpfs /run
mkdir -p /run/netns
work=/run/try-it
mkdir -p "$work/keys" "$work/site" "$work/store"
cd "$work"

say "Three hosts: home, net and mobile; the mobile node has two links, careof-wifi and careof-lte"
for host in home net mobile; do
  ip netns add "$host"
  ip -n "$host" link set lo up
done
link() { # host, its interface, its address; then those of the other end
  ip -n "$1" link add "$2" type veth peer name "$5" netns "$4"
  ip -n "$1" address add "$3" dev "$2"
  ip -n "$4" address add "$6" dev "$5"
  ip -n "$1" link set "$2" up
  ip -n "$4" link set "$5" up
}
link home careof-up 10.0.0.2/24 net to-home 10.0.0.1/24
link mobile careof-wifi 198.51.100.2/24 net to-wifi 198.51.100.1/24
link mobile careof-lte 203.0.113.2/24 net to-lte 203.0.113.1/24
ip netns exec net sysctl -qw net.ipv4.ip_forward=1
ip -n home address add 192.0.2.1/32 dev lo
ip -n home route add default via 10.0.0.1
ip -n net route add 192.0.2.0/24 via 10.0.0.2
ip -n mobile route add default via 198.51.100.1 metric 10
ip -n mobile route add default via 203.0.113.1 metric 20

say "The home agent and the mobile node, with one key"
(umask 077; python3 -c 'import secrets; print(secrets.token_hex(16))' >keys/mobile)
cp "$here"/try-it/*.toml .
for name in home mobile; do
  ip netns exec "$name" "$AGENT" check "$name.toml"
  ip netns exec "$name" "$AGENT" "$name.toml" 2>"$name.log" &
done

# Waits until a command succeeds.
until_true() {
  local what=$1 tries=0
  shift
  until "$@" >/dev/null 2>&1; do
    { ((++tries < 1200)) && kill -0 %1 && kill -0 %2; } 2>/dev/null || { cat home.log mobile.log >&2; fail "$what" "above is what the agents logged"; }
    sleep 0.1
  done
}
registered() { "$AGENT" status --socket mobile.sock | grep -q ' is registered with '; }
until_true "the mobile node did not register" registered
"$AGENT" status --socket mobile.sock

say "A download of 20 MB to 192.0.2.10 at 4 MB/s, and after 2 s a handover from careof-wifi to careof-lte"
head -c 20000000 /dev/urandom >site/file
ip netns exec home python3 -m http.server --directory site --bind 192.0.2.1 8080 >/dev/null 2>&1 &
until_true "the web server did not start" ip netns exec home curl -s -o /dev/null http://192.0.2.1:8080/
ip netns exec mobile curl -sS --interface 192.0.2.10 --limit-rate 4M -o got http://192.0.2.1:8080/file &
download=$!
sleep 2
ip -n mobile link set careof-wifi down
wait "$download" || fail "the download broke" "cat $work/*.log"
cmp site/file got
sha256sum site/file got
"$AGENT" status --socket mobile.sock
"$AGENT" status --socket home.sock

say "The same TCP connection, two links, every byte there. The agents stop and put their hosts back."
kill %1 %2
wait %1 %2 || true
