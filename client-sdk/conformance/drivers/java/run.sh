#!/bin/sh
# Runs the driver that build.sh built.
here=$(cd "$(dirname "$0")" && pwd)
exec java -Xmx1g -Xshare:auto -cp "$here/target/classes:$here/target/lib/*" dev.toolgate.conformance.Driver
