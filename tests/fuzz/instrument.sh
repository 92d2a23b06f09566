#!/bin/sh
# Stands between cargo and rustc for the workspace's own crates (RUSTC_WORKSPACE_WRAPPER): adds $FUZZ_FLAGS
# to what the fuzz targets reach. Cargo keeps wrapped artefacts apart and shares all dependencies.
rustc=$1
shift
case "${CARGO_PKG_NAME:-}" in
toolgate-core | toolgate-config | toolgate-store | toolgate-routing | toolgate-access | toolgate-llm | toolgate-gateway-llm | toolgate-encoder | toolgate-model-hub | toolgate-encoder-worker | toolgate-fuzz)
    # shellcheck disable=SC2086 # a list of flags
    exec "$rustc" "$@" $FUZZ_FLAGS
    ;;
*) exec "$rustc" "$@" ;;
esac
