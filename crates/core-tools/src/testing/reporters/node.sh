#!/bin/sh
# The `node` of a test command that sets NODE_OPTIONS itself: the next one in PATH, with our module.
folder=${0%/*}
rest=$PATH:
while [ -n "$rest" ]; do
  entry=${rest%%:*}
  rest=${rest#*:}
  if [ "$entry" != "$folder" ] && [ -f "$entry/node" ] && [ -x "$entry/node" ]; then
    exec "$entry/node" --require "${folder%/*}/preload.cjs" "$@"
  fi
done
echo "node: not found" >&2
exit 127
