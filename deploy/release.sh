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
done
unset GOOS GOARCH
go run -buildvcs=auto ./cmd/fspda version --sbom >"$out/sbom.cdx.json"
deploy/licenses.sh >"$out/LICENSES.txt"
cp "$out/LICENSES.txt" "$out/container"
cp deploy/release.Dockerfile "$out/container/Dockerfile"
touch "$out/container/runs/.keep"
cd "$out"
find . -type f ! -name SHA256SUMS | sort | sed 's#^\./##' | xargs sha256sum >SHA256SUMS
