#!/bin/sh
# Run as root while the container is built; the options of the feature are variables.
set -eu
cd "$(dirname "$0")"
set -- --to "${CORETOOLS_PREFIX:-/usr/local}/bin"
case ${VERSION:-latest} in
  latest) ;;
  *) set -- "$@" --version "$VERSION" ;;
esac
[ -z "${FROM:-}" ] || set -- "$@" --from "$FROM"
if [ -z "${FROM:-}" ] && ! command -v curl >/dev/null && ! command -v wget >/dev/null; then
  if command -v apt-get >/dev/null; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends curl ca-certificates
  elif command -v apk >/dev/null; then
    apk add --no-cache curl ca-certificates
  elif command -v dnf >/dev/null; then
    dnf install -y curl ca-certificates
  fi
fi
sh ./coretools-install.sh "$@"
