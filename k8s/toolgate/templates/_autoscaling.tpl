{{/* Pods by who waits, and by how long answers take: whichever asks for more wins. Workers by how busy their devices are
too, where that is set: it asks for pods before anybody waits, and may ask for too many, because batches grow. Never by
the utilisation that a GPU reports, which says nothing of how much more it could do. */}}

{{- define "toolgate.autoscaler" -}}
{{- $scaling := .values.autoscaling -}}
{{- $name := include "toolgate.componentName" . -}}
{{- $pods := printf "namespace=%q,pod=~%q" .root.Release.Namespace (printf "%s-[a-z0-9]+-[a-z0-9]+" $name) -}}
{{- if not $scaling.enabled }}
{{- else if eq $scaling.kind "hpa" }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "toolgate.metadata" . | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $name }}}
  minReplicas: {{ $scaling.minReplicas }}
  maxReplicas: {{ $scaling.maxReplicas }}
  metrics:
    - type: Pods
      pods:
        metric: {name: toolgate_embed_queue_depth}
        target: {type: AverageValue, averageValue: {{ $scaling.queueDepth | quote }}}
    - type: Pods
      pods:
        metric: {name: toolgate_call_p99_seconds}
        target: {type: AverageValue, averageValue: {{ printf "%dm" (int $scaling.latencyMilliseconds) }}}
    {{- with $scaling.deviceBusyPercent }}
    - type: Pods
      pods:
        metric: {name: toolgate_embed_device_busy_ratio}
        target: {type: AverageValue, averageValue: {{ printf "%dm" (mul 10 (int .)) }}}
    {{- end }}
  behavior:
    {{- include "toolgate.scalingBehavior" . | nindent 4 }}
{{- else }}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "toolgate.metadata" . | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $name }}}
  pollingInterval: 15
  minReplicaCount: {{ $scaling.minReplicas }}
  maxReplicaCount: {{ $scaling.maxReplicas }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        {{- include "toolgate.scalingBehavior" . | nindent 8 }}
  triggers:
    - type: prometheus
      metricType: AverageValue
      metadata:
        serverAddress: {{ .root.Values.monitoring.keda.prometheusAddress | quote }}
        query: {{ printf "sum(toolgate_embed_queue_depth{%s})" $pods | squote }}
        threshold: {{ $scaling.queueDepth | quote }}
    - type: prometheus
      metricType: Value
      metadata:
        serverAddress: {{ .root.Values.monitoring.keda.prometheusAddress | quote }}
        query: {{ printf "avg(histogram_quantile(0.99, sum by (pod, le) (rate(rpc_server_call_duration_seconds_bucket{rpc_method=~%q,%s}[2m]))) >= 0)" (printf ".*%s" .method) $pods | squote }}
        threshold: {{ divf $scaling.latencyMilliseconds 1000 | quote }}
    {{- with $scaling.deviceBusyPercent }}
    - type: prometheus
      metricType: AverageValue
      metadata:
        serverAddress: {{ $.root.Values.monitoring.keda.prometheusAddress | quote }}
        query: {{ printf "sum(rate(toolgate_embed_device_busy_seconds_total{%s}[2m]))" $pods | squote }}
        threshold: {{ divf . 100 | quote }}
    {{- end }}
{{- end }}
{{- end -}}

{{/* Up at once, down slowly: a pod that goes takes its caches along. */}}
{{- define "toolgate.scalingBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: 0
  selectPolicy: Max
  policies:
    - {type: Percent, value: 100, periodSeconds: 30}
    - {type: Pods, value: 2, periodSeconds: 30}
scaleDown:
  stabilizationWindowSeconds: 300
  policies:
    - {type: Pods, value: 1, periodSeconds: 60}
{{- end -}}

{{/* The guard's metric, for the HPA's metrics API: one series a pod, of Route for servers and of Embed for workers. */}}
{{- define "toolgate.latencyRule" -}}
{{- $pods := printf "%s-(encoder-worker-)?[a-z0-9]+-[a-z0-9]+" (include "toolgate.fullname" .) -}}
- record: toolgate_call_p99_seconds
  expr: |-
    histogram_quantile(0.99, sum by (namespace, pod, le) (rate(rpc_server_call_duration_seconds_bucket{
      rpc_method=~".*(RouterService/Route|EncoderService/Embed)", namespace={{ .Release.Namespace | quote }}, pod=~{{ $pods | quote }}
    }[2m]))) >= 0
{{- end -}}

{{/* Share of the time that a worker's device ran batches, 0 to 1, for the HPA's metrics API. */}}
{{- define "toolgate.busyRule" -}}
- record: toolgate_embed_device_busy_ratio
  expr: |-
    sum by (namespace, pod) (rate(toolgate_embed_device_busy_seconds_total{
      namespace={{ .Release.Namespace | quote }}, pod=~{{ printf "%s-encoder-worker-[a-z0-9]+-[a-z0-9]+" (include "toolgate.fullname" .) | quote }}
    }[2m]))
{{- end -}}

{{- define "toolgate.disruptionBudget" -}}
{{- if .values.podDisruptionBudget.enabled }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "toolgate.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  # A pod that does not work must not keep its node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "toolgate.selector" . | nindent 6 }}
{{- end }}
{{- end -}}
