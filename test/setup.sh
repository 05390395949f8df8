#!/usr/bin/env bash
# Installs what the tests need and the machine lacks. Touches nothing that is
# there already. On a system where it cannot install, it names what is missing
# and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

need_go=1.26
need_node=20 # what builds the console and drives its browser

# What is missing, as Debian package names.
packages=()
missing() { packages+=("$@"); }

has_postgres() {
  command -v postgres >/dev/null && command -v initdb >/dev/null && return
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

if ! command -v go >/dev/null; then
  echo "setup: Go is missing. Install Go $need_go or later, then run this again." >&2
  exit 1
fi
command -v cc >/dev/null || command -v gcc >/dev/null || missing gcc libc6-dev # the race detector links with cgo
has_postgres || missing postgresql
command -v redis-server >/dev/null || missing redis-server
command -v node >/dev/null || missing nodejs
command -v npm >/dev/null || missing npm
command -v vips >/dev/null || missing libvips-tools # one of the two ways of working on pictures
command -v promtool >/dev/null || missing prometheus # checks rules, and answers the dashboard's queries
command -v chromium >/dev/null || missing chromium
compgen -G '/usr/share/fonts/opentype/noto/NotoSansCJK*' >/dev/null || missing fonts-noto-cjk # pages in Chinese

install_packages() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      echo "setup: missing: ${packages[*]} (Debian package names). Not root, and sudo does not work here: install them, then run this again." >&2
      exit 1
    fi
  fi
  if ! command -v apt-get >/dev/null; then
    echo "setup: missing: ${packages[*]} (Debian package names). This system has no apt-get: install what they hold, then run this again." >&2
    exit 1
  fi
  echo "setup: installing ${packages[*]}"
  "${as_root[@]}" apt-get -qq update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${packages[@]}" >/dev/null
}
[ ${#packages[@]} -eq 0 ] || install_packages

major=$(node -p 'process.versions.node.split(".")[0]')
if [ "$major" -lt "$need_node" ]; then
  echo "setup: node is version $major; the tests need $need_node or later. Install a newer Node, then run this again." >&2
  exit 1
fi

# Node modules: the SDKs and the sample payloads of the end-to-end tests, BullMQ, and
# what the console is built with and tested by.
for folder in test/e2e engine/redis/testdata/node console test/console; do
  stamp=$folder/node_modules/.lock
  if ! cmp -s "$folder/package-lock.json" "$stamp"; then
    echo "setup: installing the Node modules of $folder"
    npm --prefix "$folder" ci --no-audit --no-fund --silent
    cp "$folder/package-lock.json" "$stamp"
  fi
done

go mod download
echo "setup: all there"
