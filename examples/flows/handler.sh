#!/bin/sh
# The steps of registration.yaml. A job comes as one line of JSON; the last line with a
# result is what the step gives.
read -r job
case $FOREBAY_JOB_NAME in
validate-user-data)
	case $job in
	*'"email":"'*@*) echo '{"result":{"valid":true}}' ;;
	*) echo '{"error":"this is no address of mail"}'; exit 65 ;; # it will never be one
	esac ;;
create-user-record)
	echo '{"progress":50,"stage":"database"}'
	echo '{"result":{"userId":"user_'$$'"}}' ;;
send-welcome-email)
	case $job in
	*@refuses.example*) echo '{"error":"554 no mail today"}'; exit 1 ;;
	esac
	echo '{"result":{"sent":true}}' ;;
initialize-workspace)
	for part in folders members settings; do
		echo '{"progress":50,"stage":"'$part'"}'
	done
	echo '{"result":{"workspace":"ready"}}' ;;
*)
	echo '{"result":null}' ;;
esac
