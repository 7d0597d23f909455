#!/bin/sh
# Submits a job over Kafka with kcat: kafka.sh BROKERS SOURCE. Prints the events of the job as they arrive, up to its terminal event.
set -eu
[ $# -eq 2 ] || { echo "usage: kafka.sh BROKERS SOURCE" >&2; exit 2; }
brokers=$1 source=$2
id="shell-$$-$(date +%s)"
printf '{"id": "%s", "source": "%s", "width": 400, "height": 300}\n' "$id" "$source" | kcat -P -b "$brokers" -t halcyon.jobs
# The key of an event record is the job id. sed exits after the terminal event, but kcat would only exit at its next write. With a named pipe, the
# script does not wait for kcat and kills it.
events=$(mktemp -d) && mkfifo "$events/pipe"
kcat -C -b "$brokers" -t halcyon.events -o beginning -u -q -f '%k %s\n' >"$events/pipe" &
trap 'kill $! 2>/dev/null; rm -r "$events"' EXIT
sed -n "/^$id /{s/^[^ ]* //p;/\"type\":\"halcyon.image.started\"/!{/\"type\":\"halcyon.image.progress\"/!q;};}" <"$events/pipe"
