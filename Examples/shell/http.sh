#!/bin/sh
# A job over HTTP, with curl: http.sh GATEWAY SOURCE FILE (the key, if any, in HALCYON_KEY).
set -eu
gateway=$1 source=$2 file=$3
request() { curl --silent --show-error --fail-with-body ${HALCYON_KEY:+-H "Authorization: Bearer $HALCYON_KEY"} "$@"; }
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

status=$(request "$gateway/v1/jobs" -H 'Content-Type: application/json' \
    -d "{\"source\": \"$source\", \"width\": 400, \"height\": 300}" | field status)
while answer=$(request "$gateway$status?wait=25") && state=$(printf %s "$answer" | field state); do
    case $state in
    ready) break ;;
    failed | cancelled | superseded) printf '%s\n' "$answer" >&2 && exit 1 ;;
    esac
    sleep 0.25
done
key=$(printf %s "$answer" | python3 -c 'import json, sys, urllib.parse as u; print(u.quote(json.load(sys.stdin)["event"]["data"]["key"], safe=""))')
request -o "$file" "$gateway/v1/images/$key"
echo "$state"
