#!/usr/bin/env bash
# What a library costs whoever links it: dependencies, and the time of a clean build. Prints a table in Markdown.
#   benchmarks/minimal-builds.sh              everything, which takes an hour on a small machine
#   benchmarks/minimal-builds.sh --count      dependencies alone
#   benchmarks/minimal-builds.sh role-policy  what begins with this
set -euo pipefail
cd "$(dirname "$0")/.."
count=false
[ "${1:-}" = --count ] && count=true && shift
wanted=${1:-}
# A package, and its features; `-` for the package as it comes.
sets=(
  "process-runner -"
  "role-policy -"
  "role-policy proxy"
  "context-compiler none"
  "context-compiler -"
  "core-tools filesystem"
  "core-tools git"
  "core-tools ci"
  "core-tools testing"
  "core-tools context"
  "core-tools inspect"
  "core-tools logs"
  "core-tools trace"
  "core-tools sqlite"
  "core-tools postgres"
  "core-tools introspection"
  "core-tools sessions"
  "core-tools filesystem,mcp"
  "coretools-mcp -"
  "mcp-http -"
)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
TIMEFORMAT="%R s (%U s)"

# Seconds by the clock, and in brackets those of all processors.
build() {
  rm -rf "$folder/target"
  { time CARGO_TARGET_DIR="$folder/target" CARGO_INCREMENTAL=0 cargo build --quiet --locked "$@" 2>"$folder/said"; } \
    2>&1 || { cat "$folder/said" >&2 && exit 1; }
}

cargo fetch --quiet --locked
echo "| package | features | crates below it | debug build | release build |"
echo "|---|---|---|---|---|"
for set in "${sets[@]}"; do
  read -r package features <<<"$set"
  case "$package $features" in "$wanted"*) ;; *) continue ;; esac
  arguments=(--package "$package")
  case $features in
    -) shown=default ;;
    none) shown=none && arguments+=(--no-default-features) ;;
    *) shown=$features && arguments+=(--no-default-features --features "$features") ;;
  esac
  # Also what only a build script needs: it is compiled all the same. `(*)` marks what was listed before.
  tree=$(cargo tree --locked "${arguments[@]}" --edges normal,build --prefix none --format '{p}')
  crates=$(($(sed 's/ (\*)$//' <<<"$tree" | sort -u | wc -l) - 1))
  debug=- release=-
  if ! $count; then
    debug=$(build "${arguments[@]}")
    release=$(build --release "${arguments[@]}")
  fi
  echo "| $package | $shown | $crates | $debug | $release |"
done
