{{/* What pods of both programs have in common. */}}

{{- define "toolgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "toolgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Nothing talks to Kubernetes, and variables that Services add (TOOLGATE_PORT=tcp://...) would be taken for ours. */}}
{{- define "toolgate.podBasics" -}}
serviceAccountName: {{ include "toolgate.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- include "toolgate.podSecurity" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "toolgate.gracePeriod" -}}
{{- $needed := add (int .preStopSeconds) (int .drainSeconds) 5 -}}
{{- default $needed .terminationGracePeriodSeconds -}}
{{- end -}}

{{- define "toolgate.preStop" -}}
{{- if gt (int .preStopSeconds) 0 }}
lifecycle:
  preStop:
    sleep: {seconds: {{ .preStopSeconds }}}
{{- end }}
{{- end -}}

{{/* Tries of the startup probe, which come every two seconds. */}}
{{- define "toolgate.startupTries" -}}
{{- max 1 (div (add (int .startupProbe.seconds) 1) 2) -}}
{{- end -}}

{{- define "toolgate.spread" -}}
{{- $parts := list (dict "key" "topology.kubernetes.io/zone" "when" .spread.zone) (dict "key" "kubernetes.io/hostname" "when" .spread.node) -}}
{{- $selector := include "toolgate.selector" . -}}
{{- if or .spread.zone .spread.node }}
topologySpreadConstraints:
  {{- range $parts }}
  {{- if .when }}
  - maxSkew: 1
    topologyKey: {{ .key }}
    whenUnsatisfiable: {{ .when }}
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
    # Each revision is spread for itself: old pods say nothing of where the new ones should be.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The folder of the model in use. */}}
{{- define "toolgate.modelDirectory" -}}
{{- printf "%s/%s" (trimSuffix "/" .Values.model.path) .Values.model.name -}}
{{- end -}}

{{- define "toolgate.modelVolume" -}}
{{- if eq .Values.model.source "volume" }}
- name: models
  persistentVolumeClaim: {claimName: {{ .Values.model.existingClaim }}, readOnly: true}
{{- else if eq .Values.model.source "fetch" }}
- name: models
  emptyDir: {sizeLimit: 1Gi}
{{- end }}
{{- end -}}

{{- define "toolgate.modelMount" -}}
{{- if ne .Values.model.source "image" }}
- {name: models, mountPath: {{ .Values.model.path | quote }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* Gets the model before the program starts; every file is checked by its hash. */}}
{{- define "toolgate.modelFetch" -}}
{{- if eq .root.Values.model.source "fetch" }}
initContainers:
  - name: model
    image: {{ include "toolgate.image" . }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args: [model, fetch, --model, {{ .root.Values.model.name }}, --model-dir, {{ include "toolgate.modelDirectory" .root | quote }}]
    env:
      - {name: HOME, value: /tmp}
      {{- with .root.Values.model.hub }}
      - {name: TOOLGATE_MODEL_HUB, value: {{ . | quote }}}
      {{- end }}
    securityContext:
      {{- include "toolgate.containerSecurity" . | nindent 6 }}
    resources:
      requests: {cpu: 100m, memory: 64Mi, ephemeral-storage: 256Mi}
      limits: {memory: 256Mi, ephemeral-storage: 1Gi}
    volumeMounts:
      - {name: models, mountPath: {{ .root.Values.model.path | quote }}}
      - {name: tmp, mountPath: /tmp}
{{- end }}
{{- end -}}

{{/* Where the pods of a component may run. */}}
{{- define "toolgate.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .requirements }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            {{- toYaml . | nindent 12 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* What the collector of traces wants to see. The one secret that is a variable: the exporter reads no file. */}}
{{- define "toolgate.tracingEnv" -}}
{{- if and .Values.tracing.endpoint .Values.tracing.headers.existingSecret }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef: {name: {{ .Values.tracing.headers.existingSecret }}, key: {{ .Values.tracing.headers.key | quote }}}
{{- end }}
{{- end -}}

{{/* The way to the collector of traces. */}}
{{- define "toolgate.tracingEgress" -}}
{{- with .Values.tracing.endpoint }}
- ports: [{port: {{ regexFind ":[0-9]+" (regexReplaceAll "^https?://" . "") | trimPrefix ":" | default "4317" }}, protocol: TCP}]
  {{- with $.Values.networkPolicy.tracing.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "toolgate.dnsEgress" -}}
- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
  {{- with .Values.networkPolicy.dns }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "toolgate.extraEnv" -}}
{{- range . }}
- {name: {{ .name }}, value: {{ .value | quote }}}
{{- end }}
{{- end -}}

{{/* The model hub, for the init container. */}}
{{- define "toolgate.modelEgress" -}}
{{- if eq .Values.model.source "fetch" }}
- ports: [{port: 443, protocol: TCP}]
{{- end }}
{{- end -}}

{{/* Volumes of the operator's, for `volumes` and `volumeMounts` of a component. */}}
{{- define "toolgate.extraVolumes" -}}
{{- with .extraVolumes }}
{{- toYaml . }}
{{- end }}
{{- end -}}

{{- define "toolgate.extraVolumeMounts" -}}
{{- with .extraVolumeMounts }}
{{- toYaml . }}
{{- end }}
{{- end -}}
