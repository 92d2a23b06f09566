{{/* What makes no sense together. All of it is said at once, as the program does with its configuration. */}}

{{- define "toolgate.refusals" -}}
{{- $v := .Values -}}
{{- $embedded := eq $v.store.type "embedded" -}}
{{- $auth := $v.auth.methods -}}
{{- $gateway := $v.gateway -}}
{{- $llm := $v.llm -}}
{{- $exposed := ne $v.server.service.type "ClusterIP" -}}
{{- $jwks := list $v.auth.jwks.url $v.auth.jwks.existingSecret | compact -}}
{{- $rules := list
  (dict "when" (and $embedded (gt (int $v.server.replicas) 1))
    "say" "server.replicas is more than 1 with store.type=embedded: one pod at a time can have that store. Set store.type=postgresql, or server.replicas=1.")
  (dict "when" (and $embedded $v.server.autoscaling.enabled)
    "say" "server.autoscaling.enabled with store.type=embedded: one pod at a time can have that store. Set store.type=postgresql.")
  (dict "when" (and (not $embedded) (empty $v.store.postgresql.existingSecret))
    "say" "store.type=postgresql needs store.postgresql.existingSecret: a Secret with the URL.")
  (dict "when" (and (not $embedded) (empty $v.handleKey.existingSecret))
    "say" "store.type=postgresql needs handleKey.existingSecret: with keys of their own, replicas would refuse each other's handles. Make one: kubectl create secret generic toolgate-handle-key --from-literal=key=\"$(openssl rand -base64 32)\"")
  (dict "when" (and $v.handleKey.previous.existingSecret (empty $v.handleKey.existingSecret))
    "say" "handleKey.previous.existingSecret without handleKey.existingSecret: there is no new key to go over to.")
  (dict "when" (and (empty $auth) $exposed (not $v.auth.allowUnauthenticatedExposure))
    "say" (printf "server.service.type=%s with auth.methods empty: whoever reaches the port could read and change every tenant. Set auth.methods, or auth.allowUnauthenticatedExposure=true if something before it authenticates." $v.server.service.type))
  (dict "when" (and (empty $auth) (or $v.auth.adminKey.existingSecret $jwks $v.auth.issuer $v.auth.audience))
    "say" "auth.adminKey, auth.jwks, auth.issuer or auth.audience is set, but auth.methods is empty: authentication would be off.")
  (dict "when" (and $v.auth.adminKey.existingSecret $auth (not (has "api-key" $auth)))
    "say" "auth.adminKey.existingSecret needs api-key among auth.methods.")
  (dict "when" (and (has "jwt" $auth) (ne (len $jwks) 1))
    "say" "auth.methods has jwt: set one of auth.jwks.url and auth.jwks.existingSecret.")
  (dict "when" (and (has "jwt" $auth) (or (empty $v.auth.issuer) (empty $v.auth.audience)))
    "say" "auth.methods has jwt: set auth.issuer and auth.audience, or tokens made for others would be good here.")
  (dict "when" (and $jwks $auth (not (has "jwt" $auth)))
    "say" "auth.jwks needs jwt among auth.methods.")
  (dict "when" (and (has "mtls" $auth) (or (empty $v.tls.existingSecret) (empty $v.tls.clientCa.existingSecret)))
    "say" "auth.methods has mtls: set tls.existingSecret and tls.clientCa.existingSecret.")
  (dict "when" (and $v.tls.clientCa.existingSecret (empty $v.tls.existingSecret))
    "say" "tls.clientCa.existingSecret without tls.existingSecret: there is no TLS to ask for a certificate in.")
  (dict "when" (and $v.gpu.enabled (not $v.encoderWorker.enabled))
    "say" "gpu.enabled without encoderWorker.enabled: only workers run on GPUs.")
  (dict "when" (and $v.gpu.enabled (empty $v.encoderWorker.image))
    "say" "gpu.enabled needs encoderWorker.image (such as tag: 0.1.0-cuda): `image` has no cuBLAS.")
  (dict "when" (and $v.gpu.claim.enabled (not $v.gpu.enabled))
    "say" "gpu.claim.enabled without gpu.enabled: nothing would claim a GPU.")
  (dict "when" (and $v.gpu.claim.enabled (semverCompare "<1.34.0-0" .Capabilities.KubeVersion.Version))
    "say" (printf "gpu.claim.enabled needs Kubernetes 1.34 or later, and this is %s: use gpu.resourceName." .Capabilities.KubeVersion.Version))
  (dict "when" (and (not $v.encoderWorker.enabled) (empty $v.encoderWorker.addresses) (eq (dig "encoder" "in_process" true $v.config) false))
    "say" "config.encoder.in_process is false and there are no workers: nothing would embed.")
  (dict "when" (and (eq $v.model.source "volume") (empty $v.model.existingClaim))
    "say" "model.source=volume needs model.existingClaim.")
  (dict "when" (and (eq $v.model.source "fetch") (ne $v.model.name "all-MiniLM-L6-v2"))
    "say" (printf "model.source=fetch can't get %s, which is on no hub as it is used: bake it into the image, or put it on a volume." $v.model.name))
  (dict "when" (and $gateway.enabled (empty $gateway.publicUrl))
    "say" "gateway.enabled needs gateway.publicUrl: the URL that hosts use.")
  (dict "when" (and $gateway.enabled (empty $gateway.sealingKey.existingSecret))
    "say" "gateway.enabled needs gateway.sealingKey.existingSecret: with keys of their own, pods would not know each other's sessions. Make one: kubectl create secret generic toolgate-sealing-key --from-literal=key=\"$(openssl rand -hex 32)\"")
  (dict "when" (and $gateway.enabled (empty (dig "auth" "methods" list $gateway.config)) (not (dig "auth" "allow_anybody" false $gateway.config)))
    "say" "gateway.enabled needs gateway.config.auth.methods, or gateway.config.auth.allow_anybody=true if something before it authenticates.")
  (dict "when" (and $gateway.enabled (has "api-key" (dig "auth" "methods" list $gateway.config)) $embedded)
    "say" "gateway.config.auth.methods has api-key with store.type=embedded: the keys are in a store that only the server's pod has. Set store.type=postgresql, or use jwt.")
  (dict "when" (and $gateway.enabled $auth (empty $gateway.planeKey.existingSecret))
    "say" "gateway.enabled with auth.methods needs gateway.planeKey.existingSecret: an API key for the server.")
  (dict "when" (and $gateway.enabled $auth (not (has "api-key" $auth)))
    "say" "gateway.enabled with auth.methods needs api-key among them: the gateway calls the server with one.")
  (dict "when" (and $gateway.httpRoute.enabled (not $gateway.enabled))
    "say" "gateway.httpRoute.enabled without gateway.enabled: there is nothing to route to.")
  (dict "when" (and $gateway.httpRoute.enabled (empty $gateway.httpRoute.parentRefs))
    "say" "gateway.httpRoute.enabled needs gateway.httpRoute.parentRefs: the Gateway that it belongs to.")
  (dict "when" (and $llm.enabled (not (hasPrefix "https://" $llm.publicUrl)))
    "say" "llm.enabled needs llm.publicUrl: the https URL that hosts use. Requests carry the providers' keys, so that something before the proxy ends TLS.")
  (dict "when" (and $llm.enabled $embedded (not $llm.allowAnybody))
    "say" "llm.enabled with store.type=embedded: the keys of hosts are in a store that only the server's pod has. Set store.type=postgresql, or llm.allowAnybody=true if something before the proxy authenticates.")
  (dict "when" (and $llm.enabled $llm.allowAnybody (ne $llm.service.type "ClusterIP") (not $llm.allowUnauthenticatedExposure))
    "say" (printf "llm.service.type=%s with llm.allowAnybody: whoever reaches the port could call the proxy, and read all accounts. Leave allowAnybody out, so that hosts show keys, or set llm.allowUnauthenticatedExposure=true if something before the proxy authenticates." $llm.service.type))
  (dict "when" (and $llm.enabled $llm.allowAnybody $llm.httpRoute.enabled (not $llm.allowUnauthenticatedExposure))
    "say" "llm.httpRoute.enabled with llm.allowAnybody: whoever reaches the Gateway could call the proxy. Leave allowAnybody out, so that hosts show keys, or set llm.allowUnauthenticatedExposure=true if the Gateway authenticates.")
  (dict "when" (and $llm.enabled (gt (int $llm.replicas) 1) (not $llm.hostsStay))
    "say" "llm.replicas is more than 1: what ends TLS before the proxy may send a host to any pod, and a pod does not know the conversations of another. Have it send each host to one pod, such as by a hash of x-toolgate-key, and set llm.hostsStay=true, or llm.replicas=1.")
  (dict "when" (and $llm.enabled $auth (empty $llm.planeKey.existingSecret))
    "say" "llm.enabled with auth.methods needs llm.planeKey.existingSecret: an API key for the server.")
  (dict "when" (and $llm.enabled $auth (not (has "api-key" $auth)))
    "say" "llm.enabled with auth.methods needs api-key among them: the proxy calls the server with one.")
  (dict "when" (and $llm.httpRoute.enabled (not $llm.enabled))
    "say" "llm.httpRoute.enabled without llm.enabled: there is nothing to route to.")
  (dict "when" (and $llm.httpRoute.enabled (empty $llm.httpRoute.parentRefs))
    "say" "llm.httpRoute.enabled needs llm.httpRoute.parentRefs: the Gateway that it belongs to.")
-}}
{{- $found := list -}}
{{- range $rules }}{{- if .when }}{{- $found = append $found .say }}{{- end }}{{- end -}}
{{- range $name, $part := dict "server" $v.server "encoderWorker" $v.encoderWorker "gateway" $v.gateway "llm" $v.llm -}}
{{- $needed := add (int $part.preStopSeconds) (int $part.drainSeconds) 5 -}}
{{- if and $part.terminationGracePeriodSeconds (lt (int $part.terminationGracePeriodSeconds) (int $needed)) -}}
{{- $found = append $found (printf "%s.terminationGracePeriodSeconds is %d: calls in progress would be cut off; preStopSeconds and drainSeconds need %d." $name (int $part.terminationGracePeriodSeconds) $needed) -}}
{{- end -}}
{{- $taken := get (dict "server" (list "config" "store" "tmp" "secrets" "packs" "safety" "models") "encoderWorker" (list "tmp" "cuda-cache" "models") "gateway" (list "config" "secrets" "data" "tmp") "llm" (list "config" "secrets" "tmp")) $name -}}
{{- $extra := list -}}
{{- range $part.extraVolumes -}}
{{- $extra = append $extra .name -}}
{{- if has .name $taken -}}
{{- $found = append $found (printf "%s.extraVolumes has %s, which is a volume of the chart's own: name it otherwise." $name .name) -}}
{{- end -}}
{{- end -}}
{{- range $part.extraVolumeMounts -}}
{{- if not (has .name $extra) -}}
{{- $found = append $found (printf "%s.extraVolumeMounts has %s, which is not among %s.extraVolumes." $name .name $name) -}}
{{- end -}}
{{- end -}}
{{- $scaling := default (dict "enabled" false) $part.autoscaling -}}
{{- if and $scaling.enabled (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- $found = append $found (printf "%s.autoscaling.minReplicas is more than maxReplicas." $name) -}}
{{- end -}}
{{- if and $scaling.enabled (eq $scaling.kind "keda") (empty $v.monitoring.keda.prometheusAddress) -}}
{{- $found = append $found (printf "%s.autoscaling.kind=keda needs monitoring.keda.prometheusAddress." $name) -}}
{{- end -}}
{{- if and $scaling.enabled (eq $scaling.kind "hpa") (not (and $v.monitoring.podMonitor.enabled $v.monitoring.rules.enabled)) -}}
{{- $found = append $found (printf "%s.autoscaling.kind=hpa needs monitoring.podMonitor.enabled and monitoring.rules.enabled: its metrics come from there." $name) -}}
{{- end -}}
{{- end -}}
{{- if $found }}
{{- fail (printf "\n\nThese values make no sense together:\n  - %s\n" (join "\n  - " $found)) }}
{{- end }}
{{- end -}}
