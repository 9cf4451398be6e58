#!/bin/sh
# An engine whose containers are folders: engine.sh FOLDER create|destroy|list LEASE. As with real ones, what makes a
# container goes on when the client that asked for it is killed.
folder=$1 lease=$3
case $2 in
  create)
    mkdir -p "$folder"
    # The daemon's part, in a session of its own and without the client's variables.
    env -i PATH="$PATH" setsid sh -c 'sleep 0.2; mkdir "$1/$2"' sh "$folder" "$lease" </dev/null >/dev/null 2>&1 &
    until [ -d "$folder/$lease" ]; do sleep 0.02; done
    ;;
  list) ls "$folder" 2>/dev/null || true ;;
  destroy) rmdir "$folder/$lease" 2>/dev/null || [ ! -e "$folder/$lease" ] ;;
esac
