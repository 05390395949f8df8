#!/usr/bin/env bash
# Runs the suites. Each prints its own closing line; the first one that fails
# stops the run. No test may skip: test/report fails a run that has a skip.
set -euo pipefail
cd "$(dirname "$0")/.."

export CGO_ENABLED=1 # the race detector needs it; the product is built without
export GORACE=atexit_sleep_ms=10 # each process with one would sleep for a second at its end
# A count, not a time: go test -fuzz can fail when its time runs out in the middle of a run.
fuzztime=${FUZZTIME:-5000x}
soak=${SOAK:-1h}          # of load and faults, all engines together
soaktime=${SOAKTIME:-600} # seconds
# SQLite is C that was translated to Go, and runs behind one lock of ours. Watching each of its memory accesses
# made its tests three times as long and could find races of that translation only; our code is watched all the same.
unwatched=(-gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false)

say() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

static() {
  say "gofmt, vet"
  local bad
  bad=$(gofmt -l $(git ls-files '*.go'))
  if [ -n "$bad" ]; then
    echo "not formatted: $bad" >&2
    exit 1
  fi
  go vet -tags e2e ./...
  bash -n test/*.sh
}

# What is known to be wrong with our dependencies, as far as we import it.
vulnerabilities() {
  local db=${GOVULNDB:-https://vuln.go.dev}
  if ! curl -m 10 -fsS -o /dev/null "$db/index/db.json"; then
    say "NOT CHECKED for known vulnerabilities: $db cannot be reached"
    return
  fi
  say "known vulnerabilities"
  go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db "$db" -scan package ./...
}

race() {
  say "tests with the race detector"
  go test -race "${unwatched[@]}" -json -timeout 15m ./... | go run ./test/report race
}

# Every fuzz target that `go test -list` finds, one after the other.
fuzz() {
  say "fuzzing each decoder for $fuzztime"
  local package target ran=0
  for package in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -r -n1 dirname | sort -u); do
    for target in $(go test -list '^Fuzz' "./$package" | grep '^Fuzz'); do
      echo "   $package $target"
      go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "./$package" >"$log" 2>&1 || { cat "$log"; exit 1; }
      ran=$((ran + 1))
    done
  done
  echo "fuzz: $ran passed, 0 failed"
}

e2e() {
  say "end to end: the real binary, PostgreSQL, the SDKs"
  make -s build || return 1
  go test -tags e2e -json -count=1 -timeout 20m ./test/e2e | go run ./test/report e2e
}

# The console in a real browser, and that what is embedded is what its source gives.
console() {
  say "the console: Chromium, the real binary"
  make -s build
  node --test --test-reporter=spec test/console/*.test.mjs
}

# The program under mixed load on each engine while what it stands on is broken (test/soak), then
# producers and consumers on SQS over a network that resets, loses, stalls and lies, with
# a new seed each time (printed). Each run goes through hours of a clock that is not real.
soak() {
  say "the program under load and faults for $soak"
  # What SOAKFLAGS says goes to the program: --seed 7 --engines redis --json FILE
  # shellcheck disable=SC2086
  CGO_ENABLED=0 go run ./test/soak --for "$soak" ${SOAKFLAGS:-}
  say "tampering with SQS for $soaktime s"
  local until=$((SECONDS + soaktime)) runs=0
  while [ $SECONDS -lt $until ]; do
    go test -race "${unwatched[@]}" -count=1 -v -run 'TestTampering' ./engine/sqs >"$log" 2>&1 || { cat "$log"; exit 1; }
    runs=$((runs + 1))
  done
  echo "soak: $runs runs passed, 0 failed"
}

log=$(mktemp)
trap 'rm -f "$log" "$log.fuzz"' EXIT

# Fuzzing takes what the end-to-end tests leave of the processors: these wait most of their time.
together() {
  nice -n 10 bash test/run.sh fuzz >"$log.fuzz" 2>&1 &
  local fuzzing=$! bad=0
  e2e || bad=1
  wait "$fuzzing" || bad=1
  cat "$log.fuzz"
  return $bad
}

case "${1:-all}" in
  check) static; vulnerabilities; race ;;
  fuzz)  fuzz ;;
  e2e)   bash test/setup.sh; e2e ;;
  console) bash test/setup.sh; console ;;
  soak)  soak ;;
  all)   bash test/setup.sh; static; vulnerabilities; race; together; console; say "all suites passed" ;;
  *) echo "usage: test/run.sh check|fuzz|e2e|console|soak|all" >&2; exit 2 ;;
esac
