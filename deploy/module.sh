#!/usr/bin/env bash
# usage: module.sh MODULE FOLDER
# Copies the tracked files to a new folder, gives the module there another path, as example.org/you/fspda, and tests the copy.
set -euo pipefail
module=${1:?name a module path, as example.org/you/fspda}
out=$(realpath -m "${2:?name a folder that does not exist}")
mkdir "$out"
cd "$(dirname "$0")/.."
git checkout-index -a --prefix="$out/"
cd "$out"
find . -name go.mod -exec sed -i "s#^module fspda#module $module#" {} +
grep -rlE '("|`|by |run |doc )fspda/' --include='*.go' --include='*.s' --include='*.md' . |
	xargs sed -i -E "s#(\"|\`|by |run |doc )fspda/#\1$module/#g"
gofmt -w $(find . -name '*.go')
go build ./...
go vet ./cmd/... ./cli/...
go test -count 1 -run 'TestImports|TestResultHashes' .
echo "$out holds the module $module"
