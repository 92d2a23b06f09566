#!/bin/sh
# Stands between cargo and rustc (RUSTC_WRAPPER): adds $FUZZ_FLAGS to our own libraries and to the fuzz
# targets, and leaves every other crate as the workspace has it.
rustc=$1
shift
case "${CARGO_PKG_NAME:-} $*" in
*" --crate-name build_script_build "*) exec "$rustc" "$@" ;;
toolgate-server\ * | toolgate-encoder-worker\ * | toolgate-fuzz\ *)
    # shellcheck disable=SC2086 # a list of flags
    exec "$rustc" "$@" $FUZZ_FLAGS
    ;;
*) exec "$rustc" "$@" ;;
esac
