#!/bin/sh
# Submits a job over HTTP with curl and writes the image to a file: http.sh GATEWAY SOURCE FILE.
# Set HALCYON_KEY if the gateway requires a key.
set -eu
[ $# -eq 3 ] || { echo "usage: http.sh GATEWAY SOURCE FILE" >&2; exit 2; }
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
# If the image is not stored, the event contains it. Otherwise it is read with its key. curl follows a redirect to the
# result store without HALCYON_KEY.
key=$(printf %s "$answer" | python3 -c '
import base64, json, sys, urllib.parse
variant = json.load(sys.stdin)["event"]["data"]["variants"][0]
if "data" in variant:
    open(sys.argv[1], "wb").write(base64.b64decode(variant["data"]))
else:
    print(urllib.parse.quote(variant["key"], safe=""))' "$file")
[ -z "$key" ] || request --location -o "$file" "$gateway/v1/images/$key"
echo "$state"
