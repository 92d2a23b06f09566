#!/bin/sh
# Builds the driver on the packaged SDK: `build.sh REPOSITORY`, where REPOSITORY is the folder that
# `mvn deploy -DaltDeploymentRepository=local::file:REPOSITORY` of client-sdk/java wrote.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -ne 1 ] || [ ! -d "$1/dev/toolgate/toolgate-client" ]; then
    echo "usage: $0 REPOSITORY, a folder that holds dev/toolgate/toolgate-client" >&2
    exit 2
fi
repository=$(cd "$1" && pwd)

rm -rf "$here/target"
mkdir "$here/target"
# In place of Maven's empty global settings: the user's own, with a mirror for one, stay in force.
cat >"$here/target/settings.xml" <<SETTINGS
<settings>
  <profiles>
    <profile>
      <id>packaged-sdk</id>
      <repositories><repository><id>packaged-sdk</id><url>file:$repository</url></repository></repositories>
    </profile>
  </profiles>
  <activeProfiles><activeProfile>packaged-sdk</activeProfile></activeProfiles>
</settings>
SETTINGS

# Maven keeps a release for good once it has it, and this one may have been packaged anew.
mvn -B -q -f "$here/pom.xml" \
    org.apache.maven.plugins:maven-dependency-plugin:3.11.0:purge-local-repository \
    -DmanualIncludes=dev.toolgate:toolgate-client -DreResolve=false
exec mvn -B -q -gs "$here/target/settings.xml" -f "$here/pom.xml" process-classes
