#!/bin/sh
# Regenerates src/generated/java from proto/toolgate/v1. `--check` writes nothing there, and fails when what is
# committed is not current. protoc and the generator of the stubs come from Maven, at the versions in pom.xml.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
proto=$(cd "$here/../../proto" && pwd)
committed=$here/src/generated/java
work=$here/target/generate
fresh=$work/java

case "${1-}" in
"" | --check) ;;
*)
    echo "usage: $0 [--check]" >&2
    exit 2
    ;;
esac
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) platform=linux-x86_64 ;;
Linux-aarch64) platform=linux-aarch_64 ;;
Darwin-arm64) platform=osx-aarch_64 ;;
Darwin-x86_64) platform=osx-x86_64 ;;
*)
    echo "no protoc for $(uname -s) on $(uname -m)" >&2
    exit 1
    ;;
esac

# The value of a property of pom.xml.
property() {
    sed -n "s:.*<$1>\(.*\)</$1>.*:\1:p" "$here/pom.xml"
}

# Runs a goal of the dependency plugin on one artifact, with its files going to the folder of work.
fetch() {
    goal=$1 artifact=$2
    shift 2
    mvn -B -q -f "$here/pom.xml" "org.apache.maven.plugins:maven-dependency-plugin:3.11.0:$goal" \
        "-Dartifact=$artifact" "-DoutputDirectory=$work" "$@"
}

messages=$(property protobuf.generator.version)
stubs=$(property grpc.generator.version)
protoc=$work/protoc-$messages-$platform.exe
plugin=$work/protoc-gen-grpc-java-$stubs-$platform.exe
[ -f "$protoc" ] || fetch copy "com.google.protobuf:protoc:$messages:exe:$platform"
[ -f "$plugin" ] || fetch copy "io.grpc:protoc-gen-grpc-java:$stubs:exe:$platform"
[ -f "$work/google/protobuf/timestamp.proto" ] ||
    fetch unpack "com.google.protobuf:protobuf-java:$messages" '-Dmdep.unpack.includes=google/protobuf/*.proto'
chmod +x "$protoc" "$plugin"

rm -rf "$fresh"
mkdir -p "$fresh"
# `@generated=omit`: the stubs need no annotation that the JDK does not have.
"$protoc" \
    "-I$proto" \
    "-I$work" \
    "--java_out=$fresh" \
    "--plugin=protoc-gen-grpc-java=$plugin" \
    "--grpc-java_out=@generated=omit:$fresh" \
    "$proto"/toolgate/v1/*.proto

if [ "${1-}" = --check ]; then
    if ! diff -r "$committed" "$fresh" >"$work/difference" 2>&1; then
        head -n 20 "$work/difference" >&2
        echo "src/generated/java is not current: run scripts/generate.sh" >&2
        exit 1
    fi
    echo "$(find "$fresh" -name '*.java' | wc -l) generated files are current"
else
    rm -rf "$committed"
    mkdir -p "$(dirname "$committed")"
    cp -R "$fresh" "$committed"
    echo "wrote $(find "$committed" -name '*.java' | wc -l) files"
fi
