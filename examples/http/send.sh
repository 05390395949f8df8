#!/bin/sh
# Sends events to a running server with curl, and shows its answers.
set -eu
url=${1:-http://localhost:8080}
run=$(date +%s)

echo '# one event: 202, and the id that it got'
curl -sS -d '{"eventType":"app_open","userId":"u1","payload":{"screen":"home"}}' "$url/ingest/event"

echo; echo '# a batch: the good one is queued, the bad one is kept with its reason'
curl -sS -d '[
  {"eventId":"example-'"$run"'-1","eventType":"order_paid","userId":"u1","payload":{"cents":1990}},
  {"eventId":"example-'"$run"'-2","userId":"u1","payload":{"cents":1990}}
]' "$url/ingest/batch"

echo; echo '# the same id again: a duplicate, stored once'
curl -sS -d '{"eventId":"example-'"$run"'-1","eventType":"order_paid","userId":"u1","payload":{"cents":1990}}' "$url/ingest/event"

echo; echo '# NDJSON, compressed'
printf '%s\n' '{"eventType":"scroll","payload":{"y":10}}' '{"eventType":"scroll","payload":{"y":20}}' |
  gzip | curl -sS --data-binary @- "$url/ingest/batch"

echo; echo '# where is it?'
curl -sS "$url/api/events/example-$run-1"
echo
