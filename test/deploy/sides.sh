# Two servers side by side on one host (forebay@blue, forebay@green): sourced by run.sh.
#
# They share a queue, as consumers of SQS do: here the SQS port of one more server, outside.
# Each balancer in turn stands before both.

sides_settings() {
  local sqs key
  sqs=10.77.1.1:$(free_port)
  key=$("$work/forebay-1.2.0" sqs keys add sides --data "$work/queue" --json | python3 -c 'import json, sys; k = json.load(sys.stdin); print(k["key"]["id"] + ":" + k["secret"])')
  "$work/forebay-1.2.0" serve --data "$work/queue" --listen 127.0.0.1:0 --sqs-listen "$sqs" >"$work/queue.log" 2>&1 &
  pids+=($!)
  until_true 30 curl -fsS -m 5 "http://$sqs/" --aws-sigv4 aws:amz:us-east-1:sqs -u "$key" -H 'X-Amz-Target: AmazonSQS.CreateQueue' -H 'Content-Type: application/x-amz-json-1.0' -d '{"QueueName":"app-events"}'
  local side port v at
  for v in 1.1.0 1.2.0; do
    at=/opt/forebay/releases/$v
    on 1 "[ -x $at/forebay ] || { mkdir -p $at && cat >$at/forebay && chmod 755 $at/forebay; }" <"$work/forebay-$v"
  done
  for side in blue:8081 green:8082; do
    port=${side#*:} side=${side%:*}
    on 1 "cat >/etc/forebay/$side.env && chmod 600 /etc/forebay/$side.env" <<SIDE
PORT=$port
AWS_SQS_QUEUE_URL=http://$sqs/000000000000/app-events
AWS_ENDPOINT_URL_SQS=http://$sqs
AWS_REGION=us-east-1
AWS_ACCESS_KEY_ID=${key%%:*}
AWS_SECRET_ACCESS_KEY=${key#*:}
SIDE
  done
  on 1 'cat >/etc/systemd/system/forebay@.service && mkdir -p /etc/systemd/system/forebay@.service.d &&
    cp /etc/systemd/system/forebay.service.d/credentials.conf /etc/systemd/system/forebay@.service.d/ && systemctl daemon-reload' <deploy/systemd/forebay@.service
}

side_ready() { curl -fsS -m 2 "http://$(address 1):$1/readyz"; } # PORT

# The release of one side is set, it starts and is ready; only then the other one stops.
switch_to() { # SIDE PORT VERSION OTHER
  on 1 "ln -sfn /opt/forebay/releases/$3 /opt/forebay/$1 && systemctl start forebay@$1"
  until_true 30 side_ready "$2"
  sleep 2 # both balancers take it in: two answers of /readyz, or the next request after fail_timeout
  on 1 "systemctl stop forebay@$4"
  [ "$(on 1 "systemctl show --property Result --value forebay@$4")" = success ] || fail "forebay@$4 did not stop in order"
}

sides() { # BALANCER
  start_"$1" "sides-$1" "$(address 1):8081" "$(address 1):8082"
  on 1 'ln -sfn /opt/forebay/releases/1.1.0 /opt/forebay/blue && systemctl start forebay@blue'
  until_true 30 curl -fsS -m 2 "http://127.0.0.1:$lb_port/readyz"
  load "sides-$1"
  sleep 3
  switch_to green 8082 1.2.0 blue
  sleep 3
  switch_to blue 8081 1.2.0 green
  sleep 3
  loaded "sides-$1"
  on 1 'systemctl stop forebay@blue'
}
