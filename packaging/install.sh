#!/bin/sh
# Installs mcp-stdio and mcp-http of CoreTools from a released archive, without a compiler and without root:
#
#     curl -fsSL https://github.com/OWNER/REPOSITORY/releases/latest/download/install.sh | sh
#     sh install.sh --to ~/bin --version 0.1.0
#     sh install.sh --from dist          # from archives that are on this machine
#
# It downloads one archive and SHA256SUMS, checks the one by the other, and copies the programs, their manual pages and
# completions. It changes no file of your shell. To remove all of it: sh install.sh --uninstall
set -eu

repository=OWNER/REPOSITORY
version='' to=${HOME:+$HOME/.local/bin} from='' target='' uninstall=''

usage() {
  cat <<USAGE
Usage: install.sh [--version VERSION] [--to DIR] [--from DIR_OR_URL] [--target TARGET] [--uninstall]

  --version VERSION   the version to install; default: the latest
  --to DIR            the folder of the programs; default: ~/.local/bin
  --from DIR_OR_URL   where the archives and SHA256SUMS are; default: the releases of $repository
  --target TARGET     the platform, such as x86_64-unknown-linux-musl; default: this one
  --uninstall         remove what an earlier run has put into --to and beside it
USAGE
}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --version | --to | --from | --target)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --version) version=${2#v} ;;
        --to) to=$2 ;;
        --from) from=$2 ;;
        --target) target=$2 ;;
      esac
      shift 2
      ;;
    --uninstall) uninstall=yes && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && fail "$1 is no option" ;;
  esac
done
[ -n "$to" ] || fail "there is no HOME; name a folder with --to"
# Manual pages and completions lie beside the folder of the programs: ~/.local/share beside ~/.local/bin.
share=$(dirname "$to")/share

files() {
  for program in mcp-stdio mcp-http; do
    echo "$to/$program"
    echo "$share/bash-completion/completions/$program"
    echo "$share/zsh/site-functions/_$program"
    echo "$share/fish/vendor_completions.d/$program.fish"
    for page in "$share/man/man1/$program.1" "$share/man/man1/$program"-*.1; do
      echo "$page"
    done
  done
}

if [ -n "$uninstall" ]; then
  files | while read -r file; do
    [ ! -f "$file" ] || { rm -- "$file" && echo "removed $file"; }
  done
  exit 0
fi

if [ -z "$target" ]; then
  case $(uname -s)-$(uname -m) in
    Linux-x86_64 | Linux-amd64) target=x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-musl ;;
    Darwin-arm64) target=aarch64-apple-darwin ;;
    Darwin-x86_64) target=x86_64-apple-darwin ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m); build it: cargo install --locked coretools-mcp" ;;
  esac
fi

fetch() { # fetch URL_OR_FILE FILE
  case $1 in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl --proto '=https,http' --fail --silent --show-error --location --output "$2" "$1"
      elif command -v wget >/dev/null; then
        wget --quiet --output-document "$2" "$1"
      else
        fail "neither curl nor wget is here"
      fi || fail "cannot download $1"
      ;;
    *) cp -- "$1" "$2" || fail "cannot read $1" ;;
  esac
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

if [ -z "$from" ]; then
  case $repository in
    */REPOSITORY) fail "this copy names no repository yet; name the archives with --from" ;;
  esac
  if [ -n "$version" ]; then
    from=https://github.com/$repository/releases/download/v$version
  else
    from=https://github.com/$repository/releases/latest/download
  fi
fi
fetch "$from/SHA256SUMS" "$work/SHA256SUMS"
# A line of it is a sum, blanks, perhaps a star, and a name.
archive=$(sed -n "s/^[0-9a-f]\{64\} [ *]\(coretools-${version:-[0-9][^ ]*}-$target\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS" | tail -n 1)
[ -n "$archive" ] || fail "$from has no archive ${version:+of version $version }for $target"
fetch "$from/$archive" "$work/$archive"
wanted=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$archive\$/\1/p" "$work/SHA256SUMS" | tail -n 1)
if command -v sha256sum >/dev/null; then
  found=$(sha256sum "$work/$archive")
else
  found=$(shasum -a 256 "$work/$archive")
fi
[ "${found%% *}" = "$wanted" ] || fail "$archive is damaged or not the released one: its SHA-256 is ${found%% *}, and SHA256SUMS has $wanted"

tar -xzf "$work/$archive" -C "$work"
unpacked=$work/${archive%.tar.gz}
[ -x "$unpacked/mcp-stdio" ] || fail "$archive holds no mcp-stdio"
"$unpacked/mcp-stdio" --version >/dev/null || fail "the mcp-stdio in $archive does not run on this machine"

place() { # place FILE DIR NAME MODE: a running program is replaced, not overwritten
  mkdir -p -- "$2"
  cp -- "$1" "$2/.$3.new"
  chmod "$4" "$2/.$3.new"
  mv -f -- "$2/.$3.new" "$2/$3"
}
for program in mcp-stdio mcp-http; do
  [ -f "$unpacked/$program" ] || continue
  place "$unpacked/$program" "$to" "$program" 755
  place "$unpacked/completions/bash/$program.bash" "$share/bash-completion/completions" "$program" 644
  place "$unpacked/completions/zsh/_$program" "$share/zsh/site-functions" "_$program" 644
  place "$unpacked/completions/fish/$program.fish" "$share/fish/vendor_completions.d" "$program.fish" 644
done
for page in "$unpacked"/man/man1/*.1; do
  place "$page" "$share/man/man1" "$(basename "$page")" 644
done

echo "installed $("$to/mcp-stdio" --version) in $to"
case :${PATH:-}: in
  *":$to:"*) echo 'next: mcp-stdio print-config claude --write     (or codex, gemini, cursor, vscode, …)' ;;
  *)
    echo "next: $to/mcp-stdio print-config claude --write     (or codex, gemini, cursor, vscode, …)"
    echo "$to is not in PATH; to type mcp-stdio alone, add it: export PATH=\"$to:\$PATH\""
    ;;
esac
