#!/usr/bin/env bash
# Deployment for real: three Debian hosts with systemd (containers of systemd-nspawn), a load
# balancer before them, PostgreSQL behind them, and Ansible from outside, under load. Needs root.
#
#   test/deploy/run.sh [FOLDER]     everything is made below FOLDER and removed at the end
#   BASE=/path test/deploy/run.sh   the host's file system is kept there, and used again
#   PARTS="haproxy" ...             only these parts, of: haproxy nginx sides
#   BUILT=/path ...                 the programs are there: load, forebay-1.0.0 to 1.3.0
#   RATE=500 ...                    events a second; KEEP=1: what failed stays, to be looked at
set -euo pipefail
cd "$(dirname "$0")/../.."

rate=${RATE:-500}
parts=" ${PARTS:-haproxy nginx sides} "
work=$(mktemp -d "${1:-/var/tmp}/forebay-deploy.XXXXXX")
base=${BASE:-$work/base}
hosts=(1 2 3)
pids=()

say() { printf '== %s (%ss)\n' "$1" "$SECONDS"; }
fail() { echo "deploytest: $1" >&2; exit 1; }
. test/deploy/hosts.sh
. test/deploy/sides.sh

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

build() { # releases 1.0.0 to 1.2.0, and one that starts and ends at once
  local v
  if [ -n "${BUILT:-}" ]; then cp "$BUILT"/{load,forebay-*} "$work"; return; fi
  for v in 1.0.0 1.1.0 1.2.0; do
    CGO_ENABLED=0 go build -trimpath -tags nodynamic -ldflags "-s -w -buildid=$v" -o "$work/forebay-$v" ./cmd/forebay
  done
  go build -o "$work/load" ./test/deploy
  cat >"$work/forebay-1.3.0" <<'BROKEN'
#!/bin/sh
# A release whose settings check passes, and whose server does not come up.
[ "$1" != serve ] || { sleep 0.5; echo "panic: a defect of this release" >&2; exit 1; }
exec /opt/forebay/releases/1.1.0/forebay "$@"
BROKEN
  chmod +x "$work/forebay-1.3.0"
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
SETTINGS
  echo 'forebay_credentials: {sink.url: "postgres://forebay@{{ forebay_database }}/postgres?sslmode=disable"}' >"$work/vault.yml"
  head -c 24 /dev/urandom | base64 >"$work/vault.key"
  ANSIBLE_LOCAL_TEMP="$work/ansible" ansible-vault encrypt --vault-password-file "$work/vault.key" "$work/vault.yml" >"$work/last" 2>&1
}

deploy() { # VERSION [OPTIONS...]
  local v=$1; shift
  ANSIBLE_CONFIG=deploy/ansible/ansible.cfg ANSIBLE_NOCOLOR=1 ANSIBLE_LOCAL_TEMP="$work/ansible" ansible-playbook -i "$work/inventory.ini" \
    -e "@$work/settings.yml" -e "@$work/vault.yml" --vault-password-file "$work/vault.key" -e "forebay_version=$v forebay_binary=$work/forebay-$v forebay_sha256=$(sha256sum "$work/forebay-$v" | cut -d' ' -f1)" \
    "$@" deploy/ansible/deploy.yml >"$work/last" 2>&1
}

runs() { # N VERSION
  [ "$(on "$1" 'readlink -f /proc/$(systemctl show --property MainPID --value forebay.service)/exe')" = "/opt/forebay/releases/$2/forebay" ]
}

all_run() { local n; for n in "${hosts[@]}"; do runs "$n" "$1" || fail "app$n does not run $1"; done; } # VERSION

load() { # NAME: begins; every load ends with what it saw
  "$work/load" -url "http://127.0.0.1:$lb_port" -rate "$rate" -acked "$work/acked.$1" >"$work/load.$1" 2>&1 &
  load_pid=$!
  pids+=($load_pid)
}

loaded() { # NAME
  kill "$load_pid"
  wait "$load_pid" || { cat "$work/load.$1" >&2; fail "requests failed during: $1"; }
  echo "   $1: $(cat "$work/load.$1")"
}

changed() { awk '/ok=.*changed=/ {sub(/.*changed=/, ""); n += $1} END {print n + 0}' "$work/last"; }

update() { # VERSION NAME: all hosts, one after the other, under load
  say "rolling update to $1 under $rate events/s, behind $2"
  load "$2"
  sleep 3
  local began=$SECONDS
  deploy "$1"
  echo "   update of three hosts: $((SECONDS - began)) s, $(changed) changes"
  sleep 3
  loaded "$2"
  all_run "$1"
}

rollback() {
  say "1.3.0 does not come up, under $rate events/s"
  load rollback
  sleep 2
  local began=$SECONDS n
  if deploy 1.3.0; then fail "the playbook did not tell that 1.3.0 is broken"; fi
  grep -q '1.3.0 did not come up on this host; 1.1.0 runs again' "$work/last" || fail "the playbook does not say what happened"
  echo "   found and rolled back: $((SECONDS - began)) s; the play says:"
  grep -o '1.3.0 did not come up on this host; [^"]*' "$work/last" | head -1 | cut -c1-150 | sed 's/^/   /'
  sleep 3
  loaded rollback
  all_run 1.1.0
  for n in 2 3; do
    if on "$n" test -e /opt/forebay/releases/1.3.0; then fail "app$n was touched by the broken release"; fi
  done
}

again() {
  say "what the play and the program refuse"
  if deploy 1.1.0 -e forebay_keep_releases=many; then fail "a word was taken for a number"; fi
  grep -q forebay_keep_releases "$work/last" || fail "the play does not name the wrong variable"
  if deploy 1.1.0 -e '{"forebay_settings": {"server": {"graze": "3s"}}}'; then fail "wrong settings were deployed"; fi
  grep -q 'server.graze' "$work/last" || fail "the playbook does not name the wrong setting"
  until_true 20 runs 1 1.1.0

  say "1.1.0 again"
  local all='{"forebay_serial": ["100%"]}' # where nothing changes, nothing can break
  deploy 1.1.0 -e "$all"
  echo "   second run: changed=$(changed)"
  [ "$(changed)" = 0 ] || fail "a second run changes something"
  deploy 1.1.0 --check --diff -e "$all"
  [ "$(changed)" = 0 ] || fail "check mode tells of changes where there are none"
}

where() { # ID: what each host knows of an event
  local n
  for n in "${hosts[@]}"; do
    echo "app$n:"
    on "$n" /opt/forebay/current/forebay events where "$1" --data /var/lib/forebay 2>&1 || true
  done
}

# Every id that was answered with 202 is looked for among the rows; what is missing is
# looked up on each host.
compare() {
  say "what was acknowledged is in the database, each event once"
  local n id
  for n in "${hosts[@]}"; do
    on "$n" /opt/forebay/current/forebay queues drain events --data /var/lib/forebay --timeout 5m >"$work/last" 2>&1 || fail "app$n has a backlog"
  done
  cat "$work"/acked.* | LC_ALL=C sort >"$work/acked"
  all_there() {
    sql 'SELECT event_id FROM events' | LC_ALL=C sort >"$work/rows"
    LC_ALL=C comm -23 "$work/acked" "$work/rows" >"$work/lost"
    [ ! -s "$work/lost" ]
  }
  for n in 1 2 3 4 5 6; do all_there && break || sleep 10; done
  uniq -d "$work/rows" >"$work/twice"
  LC_ALL=C comm -13 "$work/acked" <(uniq "$work/rows") >"$work/unasked"
  echo "   $(wc -l <"$work/acked") acknowledged, $(wc -l <"$work/rows") rows, $(wc -l <"$work/lost") lost, $(wc -l <"$work/twice") twice, $(wc -l <"$work/unasked") that nobody sent"
  for id in $(head -3 "$work/lost" "$work/twice" -q); do echo "-- $id"; where "$id"; done
  [ ! -s "$work/lost" ] || fail "events are lost"
  [ ! -s "$work/twice" ] || fail "events are there twice"
  [ ! -s "$work/unasked" ] || fail "there are rows that nobody sent"
  say "where one of them went"
  where "$(shuf -n 1 "$work/acked")" | sed 's/^/   /'
}

need
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
make_base
say "three hosts boot"
for n in "${hosts[@]}"; do boot "$n"; done
build
for n in "${hosts[@]}"; do until_true 60 on "$n" systemctl is-system-running --wait; done
start_database
inventory
versions

say "1.0.0 is deployed"
deploy 1.0.0 --check --diff --limit app1
if on 1 test -e /opt/forebay; then fail "check mode changes something"; fi
deploy 1.0.0 --diff -e '{"forebay_serial": ["100%"]}' # nothing runs yet that could break
if grep -q sslmode "$work/last"; then fail "the play tells a secret"; fi
all_run 1.0.0

targets=(); for n in "${hosts[@]}"; do targets+=("$(address "$n"):8080"); done
if [[ $parts = *" haproxy "* ]]; then
  start_haproxy haproxy "${targets[@]}"
  until_true 20 curl -fsS -m 2 "http://127.0.0.1:$lb_port/readyz"
  update 1.1.0 haproxy
  rollback
  again
fi
if [[ $parts = *" nginx "* ]]; then
  start_nginx nginx "${targets[@]}"
  until_true 20 curl -fsS -m 2 "http://127.0.0.1:$lb_port/readyz"
  update 1.2.0 nginx
fi
if [[ $parts = *" sides "* ]]; then
  say "blue and green on one host, under $rate events/s"
  sides_settings
  sides haproxy
  sides nginx
fi
compare
say "deployment: all as promised"
