# Hosts, the database and the balancers of the test of deployments: sourced by run.sh.

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
  for one in debootstrap systemd-nspawn ansible-playbook haproxy nginx curl ssh-keygen ip python3; do
    command -v "$one" >/dev/null || missing+=("$one")
  done
  pg=$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -1 || true)
  [ -n "$pg" ] || missing+=(initdb)
  [ ${#missing[@]} -eq 0 ] || fail "missing: ${missing[*]} (Debian: debootstrap systemd-container ansible-core haproxy nginx-light curl openssh-client iproute2 python3 postgresql)"
  [ "$(id -u)" -eq 0 ] || fail "needs root"
  pg=$(dirname "$(readlink -f "$pg")")
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
  ssh -i "$work/key" -o UserKnownHostsFile="$work/known_hosts" -o ConnectTimeout=5 -o BatchMode=yes "root@$(address "$n")" "$@"
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

# The example configuration of HAProxy, with the addresses of here in place of its servers.
start_haproxy() { # NAME HOST:PORT...
  local name=$1 one n=0; shift
  lb_port=$(free_port)
  sed -e "s/bind 127.0.0.1:8080/bind 127.0.0.1:$lb_port/" -e '/^ *server app/d' deploy/haproxy/haproxy.cfg >"$work/$name.cfg"
  for one in "$@"; do n=$((n + 1)); echo "    server app$n $one check" >>"$work/$name.cfg"; done
  haproxy -c -q -f "$work/$name.cfg"
  haproxy -db -f "$work/$name.cfg" >"$work/$name.log" 2>&1 &
  pids+=($!)
}

# The same with that of nginx, which is a part of a configuration.
start_nginx() { # NAME HOST:PORT...
  local name=$1 one; shift
  lb_port=$(free_port)
  mkdir "$work/$name"
  sed -e "s/listen 127.0.0.1:8080/listen 127.0.0.1:$lb_port/" -e '/^ *server 10\./d' deploy/nginx/forebay.conf >"$work/$name/forebay.conf"
  for one in "$@"; do sed -i "/least_conn;/a\\    server $one max_fails=1 fail_timeout=5s;" "$work/$name/forebay.conf"; done
  cat >"$work/$name/nginx.conf" <<NGINX
user root;
worker_processes 1;
daemon off;
pid $work/$name/pid;
error_log $work/$name.log notice;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path $work/$name/body;
    proxy_temp_path $work/$name/proxy;
    fastcgi_temp_path $work/$name/fastcgi;
    uwsgi_temp_path $work/$name/uwsgi;
    scgi_temp_path $work/$name/scgi;
    include $work/$name/forebay.conf;
}
NGINX
  nginx -q -t -p "$work/$name" -e "$work/$name.log" -c "$work/$name/nginx.conf"
  nginx -p "$work/$name" -e "$work/$name.log" -c "$work/$name/nginx.conf" >>"$work/$name.log" 2>&1 &
  pids+=($!)
}

versions() {
  echo "   Debian $(cat "$base/etc/debian_version"), systemd $(on 1 systemctl --version | sed -n '1s/.*(\(.*\))/\1/p'), ansible-core $(dpkg-query -W -f '${Version}' ansible-core)," \
    "HAProxy $(haproxy -v | sed -n '1s/.*version \([^ ]*\).*/\1/p'), $(nginx -v 2>&1 | sed 's/.*: //'), $("$pg/postgres" --version), Linux $(uname -r), $(nproc) cores"
}
