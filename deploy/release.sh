#!/usr/bin/env bash
# usage: release.sh FOLDER
# Writes a release to a new folder: stripped programs for all systems, the files of a container image, the bill of materials, the licences of all
# modules, and checksums. Equal sources and Go releases give equal programs.
set -euo pipefail
out=$(realpath -m "${1:?name a folder that does not exist}")
mkdir "$out" "$out/container" "$out/container/runs"
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
targets="linux/amd64 linux/arm64 darwin/arm64 windows/amd64"
build() { # tags, file
	go build -trimpath -buildvcs=auto -ldflags '-s -w' -tags "$1" -o "$2" ./cmd/fspda
}
for t in $targets; do
	export GOOS=${t%/*} GOARCH=${t#*/}
	build "" "$out/fspda-$GOOS-$GOARCH$([ "$GOOS" != windows ] || echo .exe)"
	[ "$GOOS" != linux ] || build static "$out/container/fspda-linux-$GOARCH"
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/fspda
done | sort -u >"$out/modules"
unset GOOS GOARCH
go run -buildvcs=auto ./cmd/fspda version --sbom >"$out/sbom.cdx.json"
licence() { # name, folder
	files=$(find "$2" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents' \) | sort)
	[ -n "$files" ] || { echo "release.sh: $1 has no licence in $2" >&2; exit 1; }
	for f in $files; do printf '\n======== %s: %s\n\n' "$1" "$(basename "$f")"; cat "$f"; done
}
{
	licence fspda .
	licence "Go $(go env GOVERSION)" "$(go env GOROOT)"
	licence uPlot web/static/uplot
	while read -r path version dir; do licence "$path $version" "$dir"; done <"$out/modules"
} >"$out/LICENSES.txt"
rm "$out/modules"
cp "$out/LICENSES.txt" "$out/container"
cp deploy/release.Dockerfile "$out/container/Dockerfile"
touch "$out/container/runs/.keep"
cd "$out"
find . -type f ! -name SHA256SUMS | sort | sed 's#^\./##' | xargs sha256sum >SHA256SUMS
