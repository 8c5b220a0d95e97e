#!/usr/bin/env bash
# usage: licenses.sh
# Prints the licences of the program, of Go and of all modules that are linked into it, on any of its systems.
set -euo pipefail
cd "$(dirname "$0")/.."
licence() { # name, folder
	files=$(find "$2" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents' \) | LC_ALL=C sort)
	[ -n "$files" ] || { echo "licenses.sh: $1 has no licence in $2" >&2; exit 1; }
	for f in $files; do printf '\n======== %s: %s\n\n' "$1" "$(basename "$f")"; cat "$f"; done
}
licence fspda .
licence Go "$(go env GOROOT)"
licence uPlot web/static/uplot
for t in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do
	CGO_ENABLED=0 GOOS=${t%/*} GOARCH=${t#*/} go list -deps \
		-f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/fspda
done | LC_ALL=C sort -u | while read -r path version dir; do licence "$path $version" "$dir"; done
