#!/usr/bin/env bash
# Deployment for real: three Debian hosts with systemd (containers of systemd-nspawn), HAProxy
# before them, PostgreSQL behind them, and Ansible from outside, under load. Needs root.
#
#   test/deploy/run.sh [FOLDER]     everything is made below FOLDER and removed at the end
#   BASE=/path test/deploy/run.sh   the host's file system is kept there, and used again
set -euo pipefail
cd "$(dirname "$0")/../.."

rate=${RATE:-500} # events a second
work=$(mktemp -d "${1:-/var/tmp}/forebay-deploy.XXXXXX")
base=${BASE:-$work/base}
hosts=(1 2 3)
pids=()

say() { printf '== %s (%ss)\n' "$1" "$SECONDS"; }
fail() { echo "deploytest: $1" >&2; exit 1; }

stop() { # PID...: ends what this script started, and waits for it
  local pid end=$((SECONDS + 15))
  for pid in "$@"; do kill "$pid" 2>/dev/null || true; done
  for pid in "$@"; do
    while [ $SECONDS -lt $end ] && kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
    # Of a host that does not end: its first process, with which all others of it go.
    kill -KILL $(pgrep -P "$pid") "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

clean() {
  local code=$?
  [ $code -eq 0 ] || [ ! -s "$work/last" ] || tail -40 "$work/last" >&2
  if [ $code -ne 0 ] && [ -n "${KEEP:-}" ]; then
    echo "kept: $work; processes ${pids[*]}" >&2
    exit $code
  fi
  stop "${pids[@]}"
  rm -rf --one-file-system "$work"
  exit $code
}
trap clean EXIT

address() { echo "10.77.$1.2"; } # of a host; the other end of its cable is 10.77.N.1
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

until_true() { # SECONDS COMMAND...
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "not in time: $*"
    sleep 0.3
  done
}

need() {
  local missing=() one
  for one in debootstrap systemd-nspawn ansible-playbook haproxy ssh-keygen ip python3; do
    command -v "$one" >/dev/null || missing+=("$one")
  done
  [ ${#missing[@]} -eq 0 ] || fail "missing: ${missing[*]} (Debian: debootstrap systemd-container ansible-core haproxy openssh-client iproute2 python3)"
  [ "$(id -u)" -eq 0 ] || fail "needs root"
  pg=$(dirname "$(readlink -f "$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb | tail -1)")")
}

make_base() {
  [ ! -e "$base/etc/debian_version" ] || return 0
  say "a minimal Debian"
  local mirror
  mirror=$(awk '/^URIs:.*debian/ {print $2; exit} /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /^http.*debian/) {print $i; exit}}' /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null || true)
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,openssh-server,python3 bookworm "$base" ${mirror:+"$mirror"} >"$work/last" 2>&1
  rm -f "$base"/etc/ssh/ssh_host_* "$base"/var/cache/apt/archives/*.deb
}

boot() { # N
  local root=$work/host$1
  cp -a --reflink=auto "$base" "$root"
  echo "app$1" >"$root/etc/hostname"
  : >"$root/etc/machine-id"
  local admin=root # whose keys they are, in a host of ours
  mkdir -p "$root/$admin/.ssh" "$root/etc/systemd/network"
  cp "$work/key.pub" "$root/$admin/.ssh/authorized_keys"
  chmod -R go= "$root/$admin/.ssh"
  cat >"$root/etc/systemd/network/10-host0.network" <<NETWORK
[Match]
Name=host0
[Network]
Address=$(address "$1")/24
Gateway=10.77.$1.1
NETWORK
  ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/systemd-networkd.service"
  ssh-keygen -q -t ed25519 -N '' -f "$root/etc/ssh/ssh_host_ed25519_key"
  echo "$(address "$1") $(cut -d' ' -f1,2 "$root/etc/ssh/ssh_host_ed25519_key.pub")" >>"$work/known_hosts"
  systemd-nspawn --quiet --boot --private-users=no --register=no --keep-unit --network-veth \
    --machine="fb$1" --directory="$root" </dev/null >"$work/host$1.log" 2>&1 &
  pids+=($!)
  until_true 20 ip link show "ve-fb$1"
  ip address replace "10.77.$1.1/24" dev "ve-fb$1"
  ip link set "ve-fb$1" up
}

on() { # N COMMAND...
  local n=$1; shift
  ssh -i "$work/key" -o UserKnownHostsFile="$work/known_hosts" -o ConnectTimeout=2 -o BatchMode=yes "root@$(address "$n")" "$@"
}

start_database() {
  local where=/ user=(env)
  mkdir "$work/pg"
  if getent passwd postgres >/dev/null; then user=(setpriv --reuid postgres --regid postgres --clear-groups); else user=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
  chmod 0755 "$work"
  chown "$("${user[@]}" id -u):$("${user[@]}" id -g)" "$work/pg"
  (cd "$where" && "${user[@]}" "$pg/initdb" -D "$work/pg/data" -U forebay -A trust -E UTF8 --no-sync) >"$work/last" 2>&1
  echo "host all all 10.77.0.0/16 trust" >>"$work/pg/data/pg_hba.conf"
  pg_port=$(free_port)
  (cd "$where" && exec "${user[@]}" "$pg/postgres" -D "$work/pg/data" -p "$pg_port" -k "$work/pg" \
    -c listen_addresses=10.77.1.1,10.77.2.1,10.77.3.1) >"$work/pg.log" 2>&1 &
  pids+=($!)
  until_true 20 sql 'SELECT 1'
}

sql() { "$pg/psql" -h "$work/pg" -p "$pg_port" -U forebay -d postgres -qAtc "$1"; }

# The example configuration, with the addresses of here.
start_balancer() {
  lb_port=$(free_port)
  sed -e "s/bind 127.0.0.1:8080/bind 127.0.0.1:$lb_port/" -e 's/10\.0\.0\.1\([123]\)/10.77.\1.2/' deploy/haproxy/haproxy.cfg >"$work/haproxy.cfg"
  haproxy -c -q -f "$work/haproxy.cfg"
  haproxy -db -f "$work/haproxy.cfg" >"$work/haproxy.log" 2>&1 &
  pids+=($!)
}

build() { # releases 1.0.0 and 1.1.0, and one that starts and ends at once
  local v
  for v in 1.0.0 1.1.0; do
    CGO_ENABLED=0 go build -trimpath -tags nodynamic -ldflags "-s -w -buildid=$v" -o "$work/forebay-$v" ./cmd/forebay
  done
  go build -o "$work/load" ./test/deploy
  cat >"$work/forebay-1.2.0" <<'BROKEN'
#!/bin/sh
# A release whose settings check passes, and whose server does not come up.
[ "$1" != serve ] || { sleep 0.5; echo "panic: a defect of this release" >&2; exit 1; }
exec /opt/forebay/releases/1.1.0/forebay "$@"
BROKEN
  chmod +x "$work/forebay-1.2.0"
}

inventory() {
  {
    echo '[forebay]'
    for n in "${hosts[@]}"; do echo "app$n ansible_host=$(address "$n") forebay_database=10.77.$n.1:$pg_port"; done
  } >"$work/inventory.ini"
  cat >"$work/settings.yml" <<SETTINGS
ansible_user: root
ansible_become: false
ansible_python_interpreter: /usr/bin/python3
ansible_ssh_private_key_file: $work/key
ansible_ssh_common_args: -o UserKnownHostsFile=$work/known_hosts
forebay_listen: 0.0.0.0:8080
forebay_ready_seconds: 30
forebay_settings:
  server: {insecure: true, grace: 3s, drain: 10s}
  sink: {batchAge: 200ms}
forebay_credentials:
  sink.url: "postgres://forebay@{{ forebay_database }}/postgres?sslmode=disable"
SETTINGS
}

deploy() { # VERSION [OPTIONS...]
  local v=$1; shift
  ANSIBLE_CONFIG=deploy/ansible/ansible.cfg ANSIBLE_NOCOLOR=1 ANSIBLE_LOCAL_TEMP="$work/ansible" ansible-playbook -i "$work/inventory.ini" -e "@$work/settings.yml" \
    -e "forebay_version=$v forebay_binary=$work/forebay-$v forebay_sha256=$(sha256sum "$work/forebay-$v" | cut -d' ' -f1)" \
    "$@" deploy/ansible/deploy.yml >"$work/last" 2>&1
}

runs() { # N VERSION
  [ "$(on "$1" 'readlink -f /proc/$(systemctl show --property MainPID --value forebay.service)/exe')" = "/opt/forebay/releases/$2/forebay" ]
}

load() { # begins; every: ends with what it saw
  "$work/load" -url "http://127.0.0.1:$lb_port" -rate "$rate" -acked "$work/acked.$1" >"$work/load.$1" 2>&1 &
  load_pid=$!
  pids+=($load_pid)
}

loaded() {
  kill "$load_pid"
  wait "$load_pid" || { cat "$work/load.$1" >&2; fail "requests failed during: $1"; }
  echo "   $1: $(cat "$work/load.$1")"
}

changed() { awk '/ok=.*changed=/ {sub(/.*changed=/, ""); n += $1} END {print n + 0}' "$work/last"; }

need
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
make_base
say "three hosts boot"
for n in "${hosts[@]}"; do boot "$n"; done
build
for n in "${hosts[@]}"; do until_true 60 on "$n" systemctl is-system-running --wait; done
start_database
start_balancer
inventory

say "1.0.0 is deployed"
deploy 1.0.0 -e '{"forebay_serial": ["100%"]}' # nothing runs yet that could break
for n in "${hosts[@]}"; do runs "$n" 1.0.0 || fail "app$n does not run 1.0.0"; done
until_true 20 curl -fsS -m 2 "http://127.0.0.1:$lb_port/readyz"

say "rolling update to 1.1.0 under $rate events/s"
load update
sleep 3
began=$SECONDS
deploy 1.1.0
echo "   update of three hosts: $((SECONDS - began)) s, $(changed) changes"
sleep 3
loaded update
for n in "${hosts[@]}"; do runs "$n" 1.1.0 || fail "app$n does not run 1.1.0"; done

say "1.2.0 does not come up, under $rate events/s"
load rollback
sleep 2
began=$SECONDS
if deploy 1.2.0; then fail "the playbook did not tell that 1.2.0 is broken"; fi
grep -q '1.2.0 did not come up on this host; 1.1.0 runs again' "$work/last" || fail "the playbook does not say what happened"
echo "   found and rolled back: $((SECONDS - began)) s"
sleep 3
loaded rollback
for n in "${hosts[@]}"; do runs "$n" 1.1.0 || fail "app$n does not run 1.1.0"; done
for n in 2 3; do
  if on "$n" test -e /opt/forebay/releases/1.2.0; then fail "app$n was touched by the broken release"; fi
done

say "settings that the program refuses"
if deploy 1.1.0 -e '{"forebay_settings": {"server": {"graze": "3s"}}}'; then fail "wrong settings were deployed"; fi
grep -q 'server.graze' "$work/last" || fail "the playbook does not name the wrong setting"
until_true 20 runs 1 1.1.0

say "1.1.0 again"
deploy 1.1.0
deploy 1.1.0
echo "   second run: changed=$(changed)"
[ "$(changed)" = 0 ] || fail "a second run changes something"
deploy 1.1.0 --check --diff
[ "$(changed)" = 0 ] || fail "check mode tells of changes where there are none"

say "what was acknowledged is in the database, each event once"
sort "$work"/acked.* >"$work/acked"
all_there() {
  sql 'SELECT event_id FROM events' | LC_ALL=C sort >"$work/rows"
  LC_ALL=C sort "$work/acked" | LC_ALL=C comm -23 - "$work/rows" >"$work/lost"
  [ ! -s "$work/lost" ]
}
until_true 60 all_there
echo "   $(wc -l <"$work/acked") acknowledged, $(wc -l <"$work/lost") lost, $(uniq -d "$work/rows" | wc -l) twice"
[ "$(uniq -d "$work/rows" | wc -l)" = 0 ] || fail "events are there twice"

say "deployment: all as promised"
