{{/* The server's configuration file: what the values say, and what the chart knows itself. */}}

{{- define "toolgate.workerAddresses" -}}
{{- $addresses := .Values.encoderWorker.addresses -}}
{{- if .Values.encoderWorker.enabled -}}
{{- $own := printf "dns://%s-encoder-worker.%s.svc:7072" (include "toolgate.fullname" .) .Release.Namespace -}}
{{- $addresses = prepend $addresses $own -}}
{{- end -}}
{{- toJson $addresses -}}
{{- end -}}

{{/* Secrets are files, which a rotation replaces in place, and which no `kubectl describe` shows. */}}
{{- define "toolgate.ownConfig" -}}
{{- $secrets := "/run/secrets/toolgate" -}}
{{- $v := .Values -}}
server:
  listen: {{ printf "%s:7070" $v.server.bind | quote }}
  admin_listen: {{ printf "%s:7071" $v.server.bind | quote }}
  drain_timeout: {{ $v.server.drainSeconds }}s
store:
  path: /var/lib/toolgate/store
  {{- if eq $v.store.type "postgresql" }}
  url_file: {{ $secrets }}/store-url
  snapshot_budget: {{ $v.store.postgresql.snapshots.budget }}
  {{- end }}
encoder:
  device: cpu
  workers: {{ include "toolgate.workerAddresses" . }}
{{- if $v.handleKey.existingSecret }}
handle:
  key_file: {{ $secrets }}/handle-key
  {{- if $v.handleKey.previous.existingSecret }}
  previous_key_file: {{ $secrets }}/previous-handle-key
  {{- end }}
{{- end }}
{{- if $v.auth.methods }}
auth:
  methods: {{ toJson $v.auth.methods }}
  {{- if $v.auth.adminKey.existingSecret }}
  admin_key_file: {{ $secrets }}/admin-key
  {{- end }}
  {{- if $v.auth.jwks.existingSecret }}
  jwks_file: {{ $secrets }}/jwks.json
  {{- end }}
  {{- with $v.auth.jwks.url }}
  jwks_url: {{ . | quote }}
  {{- end }}
  {{- with $v.auth.issuer }}
  issuer: {{ . | quote }}
  {{- end }}
  {{- with $v.auth.audience }}
  audience: {{ . | quote }}
  {{- end }}
{{- end }}
{{- if $v.tls.existingSecret }}
tls:
  cert_file: {{ $secrets }}/tls.crt
  key_file: {{ $secrets }}/tls.key
  {{- if $v.tls.clientCa.existingSecret }}
  client_ca_file: {{ $secrets }}/client-ca.crt
  {{- end }}
{{- end }}
{{- if $v.packs.existingConfigMap }}
packs:
  directory: /etc/toolgate-packs
{{- end }}
{{- if $v.safety.rules.existingConfigMap }}
safety:
  rules_file: /etc/toolgate-safety/rules.yaml
{{- end }}
{{- with $v.tracing.endpoint }}
telemetry:
  otlp_endpoint: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* TOML. JSON writes strings, numbers, flags and lists of strings as TOML does. */}}
{{- define "toolgate.config" -}}
{{- $own := include "toolgate.ownConfig" . | fromYaml -}}
{{- $all := mustMergeOverwrite (deepCopy .Values.config) $own -}}
{{- range $section, $keys := $all }}
[{{ $section }}]
{{- range $key, $value := $keys }}
{{- if not (kindIs "invalid" $value) }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{ end }}
{{- end -}}

{{/* The sources of the volume of secrets. */}}
{{- define "toolgate.secretSources" -}}
{{- $v := .Values -}}
{{- $refs := list
  (dict "on" (eq $v.store.type "postgresql") "secret" $v.store.postgresql.existingSecret "key" $v.store.postgresql.key "path" "store-url")
  (dict "on" true "secret" $v.handleKey.existingSecret "key" $v.handleKey.key "path" "handle-key")
  (dict "on" true "secret" $v.handleKey.previous.existingSecret "key" $v.handleKey.previous.key "path" "previous-handle-key")
  (dict "on" (not (empty $v.auth.methods)) "secret" $v.auth.adminKey.existingSecret "key" $v.auth.adminKey.key "path" "admin-key")
  (dict "on" (not (empty $v.auth.methods)) "secret" $v.auth.jwks.existingSecret "key" $v.auth.jwks.key "path" "jwks.json")
  (dict "on" true "secret" $v.tls.existingSecret "key" $v.tls.certKey "path" "tls.crt")
  (dict "on" true "secret" $v.tls.existingSecret "key" $v.tls.keyKey "path" "tls.key")
  (dict "on" (not (empty $v.tls.existingSecret)) "secret" $v.tls.clientCa.existingSecret "key" $v.tls.clientCa.key "path" "client-ca.crt")
-}}
{{- include "toolgate.sources" $refs -}}
{{- end -}}

{{/* Files of Secrets, as sources of a projected volume. */}}
{{- define "toolgate.sources" -}}
{{- range . }}
{{- if and .on .secret }}
- secret:
    name: {{ .secret }}
    items: [{key: {{ .key | quote }}, path: {{ .path }}}]
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether `helm test` has what it takes to call. It sends no key in plain text. */}}
{{- define "toolgate.testable" -}}
{{- $v := .Values -}}
{{- $key := and (has "api-key" $v.auth.methods) $v.auth.adminKey.existingSecret $v.tls.existingSecret -}}
{{- $certificate := and (has "mtls" $v.auth.methods) $v.test.clientCertificate.existingSecret -}}
{{- if or (empty $v.auth.methods) $key $certificate }}yes{{ end -}}
{{- end -}}

{{/* The credentials of `helm test`. */}}
{{- define "toolgate.testSecrets" -}}
{{- $v := .Values -}}
{{- $tls := not (empty $v.tls.existingSecret) -}}
{{- include "toolgate.sources" (list
  (dict "on" (has "api-key" $v.auth.methods) "secret" $v.auth.adminKey.existingSecret "key" $v.auth.adminKey.key "path" "admin-key")
  (dict "on" $tls "secret" $v.test.clientCertificate.existingSecret "key" "tls.crt" "path" "client.crt")
  (dict "on" $tls "secret" $v.test.clientCertificate.existingSecret "key" "tls.key" "path" "client.key")
  (dict "on" $tls "secret" $v.test.ca.existingSecret "key" $v.test.ca.key "path" "ca.crt")
) -}}
{{- end -}}
