#!/usr/bin/env bash
# cluster.sh FOLDER: builds kube-apiserver and etcd from their Go modules into FOLDER/bin. The versions are those of
# cluster/go.mod, which are those of admission/go.mod.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/bin"
folder=$(cd "$1" && pwd)

# Modules that are only wanted here stay out of the user's cache.
export GOFLAGS="-modcacherw ${GOFLAGS:-}" GOMODCACHE=$folder/cluster-modules
trap 'rm -rf "$folder/cluster-modules"' EXIT
cd "$here/cluster"
# A server that does not know its version calls itself 0.0.0.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
set_version="-X k8s.io/component-base/version.gitVersion=$version"
go build -trimpath -ldflags '-s -w' -o "$folder/bin/etcd" go.etcd.io/etcd/server/v3
go build -trimpath -ldflags "-s -w $set_version" -o "$folder/bin/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
