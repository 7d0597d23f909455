#!/bin/sh
# A job over Kafka, with kcat: kafka.sh BROKERS SOURCE. Prints the job's events as they come, up to its end.
set -eu
brokers=$1 source=$2
id="shell-$$-$(date +%s)"
printf '{"id": "%s", "source": "%s", "width": 400, "height": 300}\n' "$id" "$source" | kcat -P -b "$brokers" -t halcyon.jobs
# The message's key is the job's id. sed ends after the job's end, and kcat with it, when it writes again: so it has a pipe of its own.
events=$(mktemp -d) && mkfifo "$events/pipe"
kcat -C -b "$brokers" -t halcyon.events -o beginning -u -q -f '%k %s\n' >"$events/pipe" &
trap 'kill $! 2>/dev/null; rm -r "$events"' EXIT
sed -n "/^$id /{s/^[^ ]* //p;/\"type\":\"halcyon.image.started\"/!{/\"type\":\"halcyon.image.progress\"/!q;};}" <"$events/pipe"
