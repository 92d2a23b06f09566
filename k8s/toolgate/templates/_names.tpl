{{/* Names and labels. Templates of a component get (dict "root" $ "component" "server"). */}}

{{- define "toolgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough for the longest suffix, "-encoder-worker". */}}
{{- define "toolgate.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The server goes by the release's name alone: clients write it. */}}
{{- define "toolgate.componentName" -}}
{{- if eq .component "server" -}}
{{- include "toolgate.fullname" .root -}}
{{- else -}}
{{- printf "%s-%s" (include "toolgate.fullname" .root) .component -}}
{{- end -}}
{{- end -}}

{{- define "toolgate.selector" -}}
app.kubernetes.io/name: {{ include "toolgate.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "toolgate.labels" -}}
{{ include "toolgate.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Without the chart's version: a change of the chart alone restarts nothing. */}}
{{- define "toolgate.podLabels" -}}
{{ include "toolgate.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "toolgate.metadata" -}}
name: {{ include "toolgate.componentName" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "toolgate.labels" . | nindent 2 }}
{{- end -}}

{{- define "toolgate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "toolgate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The image of a component, whose values may replace parts of `image`. */}}
{{- define "toolgate.image" -}}
{{- $image := mustMergeOverwrite (deepCopy .root.Values.image) (deepCopy (default dict .override)) -}}
{{- with $image.registry -}}{{ . }}/{{- end -}}
{{- $image.repository -}}
{{- if $image.digest -}}@{{ $image.digest }}{{- else -}}:{{ default .root.Chart.AppVersion $image.tag }}{{- end -}}
{{- end -}}

{{/* Where clients find the server within the cluster. */}}
{{- define "toolgate.endpoint" -}}
{{- $scheme := ternary "https" "http" (not (empty .Values.tls.existingSecret)) -}}
{{- printf "%s://%s.%s.svc:%d" $scheme (include "toolgate.fullname" .) .Release.Namespace (int .Values.server.service.port) -}}
{{- end -}}
