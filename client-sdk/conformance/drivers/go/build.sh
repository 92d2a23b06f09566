#!/bin/sh
# Vets and builds the driver against the Go module as it is packed, not against its sources:
#
#   build.sh PACKAGES FOLDER     leaves the program in FOLDER/driver
#
# PACKAGES is what `go run ./pack PACKAGES` in client-sdk/go/scripts wrote. go.sum has no line for toolgate.dev/go, whose
# contents differ from commit to commit.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
packages=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)

cp "$here/go.mod" "$out/driver.mod"
cp "$here/go.sum" "$out/driver.sum"

# What is downloaded already is taken from the user's module cache, which gets no version of ours. Ours is named by
# its contents: go remembers what stands in a folder of modules for good.
contents=$(cat "$packages"/toolgate.dev/go/@v/v*.zip | cksum | cut -d" " -f1)
rm -rf "$out"/modules-*
downloaded="file://$(go env GOMODCACHE)/cache/download"
GOPROXY="file://$packages,$downloaded,$(go env GOPROXY)"
GONOSUMDB='toolgate.dev/*'
GOMODCACHE="$out/modules-$contents"
GOFLAGS="$(go env GOFLAGS) -modcacherw"
export GOPROXY GONOSUMDB GOMODCACHE GOFLAGS

cd "$here"
go vet -p 1 -trimpath -mod=mod -modfile="$out/driver.mod" .
go build -p 1 -trimpath -mod=mod -modfile="$out/driver.mod" -o "$out/driver" .
