{{/* The LLM proxy's file: what the values say, and what the chart knows itself. */}}

{{/* Says yes if hosts must show keys of Toolgate's. */}}
{{- define "toolgate.llmHasKeys" -}}
{{- if not .Values.llm.allowAnybody -}}
yes
{{- end -}}
{{- end -}}

{{- define "toolgate.llmOwnConfig" -}}
listen: {{ printf "%s:7090" .Values.llm.bind | quote }}
public_url: {{ .Values.llm.publicUrl | quote }}
{{- if include "toolgate.llmHasKeys" . }}
key_store: "file:/run/secrets/toolgate/store-url"
{{- end }}
{{- end -}}

{{- define "toolgate.llmConfig" -}}
{{- $own := include "toolgate.llmOwnConfig" . | fromYaml -}}
{{- range $section, $keys := dict "llm" (mustMergeOverwrite (deepCopy .Values.llm.config) $own) "upstream" .Values.llm.upstream }}
[{{ $section }}]
{{- range $key, $value := $keys }}
{{- if not (kindIs "invalid" $value) }}
{{ $key }} = {{ include "toolgate.tomlValue" (dict "value" $value) }}
{{- end }}
{{- end }}
{{ end }}
{{- end -}}

{{/* Says yes if the proxy's metrics are read: with keys, that takes one of an operator's. */}}
{{- define "toolgate.llmIsScraped" -}}
{{- if and .Values.llm.enabled .Values.monitoring.podMonitor.enabled (or .Values.llm.allowAnybody .Values.llm.metricsKey.existingSecret) -}}
yes
{{- end -}}
{{- end -}}

{{/* The sources of the proxy's volume of secrets; none where it needs none. */}}
{{- define "toolgate.llmSecrets" -}}
{{- $v := .Values -}}
{{- include "toolgate.sources" (list
  (dict "on" (include "toolgate.llmHasKeys" .) "secret" $v.store.postgresql.existingSecret "key" $v.store.postgresql.key "path" "store-url")
  (dict "on" true "secret" $v.llm.planeKey.existingSecret "key" $v.llm.planeKey.key "path" "plane-key")
  (dict "on" true "secret" $v.llm.planeCa.existingSecret "key" $v.llm.planeCa.key "path" "plane-ca.crt")
) -}}
{{- end -}}

{{/* Ports of the providers, each once. */}}
{{- define "toolgate.llmPorts" -}}
{{- $own := dict "anthropic" "https://api.anthropic.com" "openai" "https://api.openai.com" "gemini" "https://generativelanguage.googleapis.com" -}}
{{- include "toolgate.portsOf" (merge (deepCopy .Values.llm.upstream) $own | values) -}}
{{- end -}}
