{{/* The gateway's file: what the values say, and what the chart knows itself. */}}

{{/* TOML of a value, tables in one line. JSON writes strings, numbers and flags as TOML does. */}}
{{- define "toolgate.tomlValue" -}}
{{- $value := .value -}}
{{- if kindIs "map" $value -}}
{ {{- range $index, $key := keys $value | sortAlpha -}}{{- if $index }},{{ end }} {{ toJson $key }} = {{ include "toolgate.tomlValue" (dict "value" (get $value $key)) }}{{- end }} }
{{- else if kindIs "slice" $value -}}
[{{- range $index, $item := $value -}}{{- if $index }}, {{ end }}{{ include "toolgate.tomlValue" (dict "value" $item) }}{{- end -}}]
{{- else -}}
{{- toJson $value -}}
{{- end -}}
{{- end -}}

{{/* The address of a pod as other pods write it. */}}
{{- define "toolgate.gatewayReplicaUrl" -}}
{{- ternary "http://[${POD_IP}]:7080" "http://${POD_IP}:7080" (eq .Values.gateway.bind "[::]") -}}
{{- end -}}

{{- define "toolgate.gatewayOwnConfig" -}}
{{- $secrets := "/run/secrets/toolgate" -}}
{{- $v := .Values -}}
listen: {{ printf "%s:7080" $v.gateway.bind | quote }}
public_url: {{ $v.gateway.publicUrl | quote }}
sealing_key: {{ printf "file:%s/sealing-key" $secrets | quote }}
replica_url: {{ include "toolgate.gatewayReplicaUrl" . | quote }}
{{- if eq $v.store.type "postgresql" }}
store_url: {{ printf "file:%s/store-url" $secrets | quote }}
{{- end }}
{{- end -}}

{{- define "toolgate.gatewayConfig" -}}
{{- $own := include "toolgate.gatewayOwnConfig" . | fromYaml -}}
{{- $usual := dict -}}
{{- if .Values.gateway.httpRoute.enabled -}}
{{- /* Its Gateway's few addresses stand for all hosts. */ -}}
{{- $usual = dict "max_connections_per_address" (.Values.gateway.config.max_connections | default 1024) -}}
{{- end -}}
{{- $all := mustMergeOverwrite $usual (deepCopy .Values.gateway.config) $own -}}
[gateway]
{{- range $key, $value := $all }}
{{- if not (kindIs "invalid" $value) }}
{{ $key }} = {{ include "toolgate.tomlValue" (dict "value" $value) }}
{{- end }}
{{- end }}
{{- range $name, $server := .Values.gateway.servers }}

[server.{{ toJson $name }}]
{{- range $key, $value := $server }}
{{ $key }} = {{ include "toolgate.tomlValue" (dict "value" $value) }}
{{- end }}
{{- end }}
{{ end -}}

{{/* Says yes if the gateway's metrics are read: with authentication, that takes a credential. */}}
{{- define "toolgate.gatewayIsScraped" -}}
{{- $methods := dig "auth" "methods" list .Values.gateway.config -}}
{{- if and .Values.gateway.enabled .Values.monitoring.podMonitor.enabled (or (empty $methods) .Values.gateway.metricsKey.existingSecret) -}}
yes
{{- end -}}
{{- end -}}

{{/* The sources of the gateway's volume of secrets. */}}
{{- define "toolgate.gatewaySecrets" -}}
{{- $v := .Values -}}
{{- $refs := list
  (dict "on" true "secret" $v.gateway.sealingKey.existingSecret "key" $v.gateway.sealingKey.key "path" "sealing-key")
  (dict "on" (eq $v.store.type "postgresql") "secret" $v.store.postgresql.existingSecret "key" $v.store.postgresql.key "path" "store-url")
  (dict "on" true "secret" $v.gateway.planeKey.existingSecret "key" $v.gateway.planeKey.key "path" "plane-key")
  (dict "on" true "secret" $v.gateway.planeCa.existingSecret "key" $v.gateway.planeCa.key "path" "plane-ca.crt")
-}}
{{- range $name, $one := $v.gateway.secrets -}}
{{- $refs = append $refs (dict "on" true "secret" $one.existingSecret "key" $one.key "path" $name) -}}
{{- end -}}
{{- include "toolgate.sources" $refs -}}
{{- end -}}

{{/* Ports of the MCP servers behind URLs, and of the authorization server's keys, each once. */}}
{{- define "toolgate.gatewayPorts" -}}
{{- $urls := list -}}
{{- range .Values.gateway.servers }}{{- with .url }}{{- $urls = append $urls . }}{{- end }}{{- end -}}
{{- with dig "auth" "jwks_url" "" .Values.gateway.config }}{{- $urls = append $urls . }}{{- end -}}
{{- include "toolgate.portsOf" $urls -}}
{{- end -}}

{{/* Ports of URLs, each once, as JSON. */}}
{{- define "toolgate.portsOf" -}}
{{- $ports := list -}}
{{- range . -}}
{{- $default := ternary "443" "80" (hasPrefix "https://" .) -}}
{{- $authority := regexReplaceAll "^https?://([^/]*).*$" . "${1}" -}}
{{- $ports = append $ports (regexFind ":[0-9]+$" $authority | trimPrefix ":" | default $default | int) -}}
{{- end -}}
{{- $ports | uniq | sortAlpha | toJson -}}
{{- end -}}
