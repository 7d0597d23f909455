{{/* What would be wrong in a way that the schema cannot say. */}}
{{- define "halcyon.checks" -}}
{{- $settings := .Values.settings -}}
{{- $worker := get $settings "worker" | default dict -}}
{{- if hasKey $worker "grace" -}}
{{- fail "give worker.graceSeconds instead of settings.worker.grace: the pod's own grace follows it" -}}
{{- end -}}
{{- if hasKey $worker "instance" -}}
{{- fail "leave settings.worker.instance out: all workers would have one name. Where they need names they get those of their pods" -}}
{{- end -}}
{{- if and (dig "staticMember" false $worker) (ne .Values.worker.kind "StatefulSet") -}}
{{- fail "settings.worker.staticMember needs worker.kind StatefulSet: a Deployment's pods never come back under the same name, so their partitions would lie idle" -}}
{{- end -}}
{{- if dig "http" "listen" "" $settings -}}
{{- fail "leave settings.http.listen out: probes and metrics are always answered, on port 9464 of listenAddress" -}}
{{- end -}}
{{- if dig "gateway" "listen" "" $settings -}}
{{- fail "leave settings.gateway.listen out: gateways listen on port 8080 of listenAddress" -}}
{{- end -}}
{{- include "halcyon.checkOpenSecrets" . -}}
{{- include "halcyon.checkVolumes" . -}}
{{- if and .Values.existingSecret .Values.secrets -}}
{{- fail "give either secrets or existingSecret" -}}
{{- end -}}
{{- if and .Values.gateway.existingSecret .Values.gateway.secrets -}}
{{- fail "give either gateway.secrets or gateway.existingSecret" -}}
{{- end -}}
{{- include "halcyon.checkGateway" . -}}
{{- include "halcyon.checkAutoscaling" . -}}
{{- if and (eq .Values.worker.kind "StatefulSet") (gt (len (include "halcyon.fullname" .)) 45) -}}
{{- fail "names of StatefulSets have at most 52 characters: give a fullnameOverride of at most 45" -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMap is for everybody's eyes. */}}
{{- define "halcyon.checkOpenSecrets" -}}
{{- $settings := .Values.settings -}}
{{- $places := dict
    "HALCYON_GATEWAY_KEYS_NAME" (list "gateway" "keys")
    "HALCYON_GATEWAY_URL_KEYS_ID" (list "gateway" "urlKeys")
    "HALCYON_SOURCES_CREDENTIALS_NAME" (list "sources" "credentials")
    "HALCYON_WEBHOOKS_SECRET" (list "webhooks" "secret")
    "HALCYON_WEBHOOKS_SECRET_NAME" (list "webhooks" "secrets")
-}}
{{- range $variable, $place := $places -}}
{{- if dig (index $place 0) (index $place 1) "" $settings -}}
{{- $values := hasPrefix "HALCYON_GATEWAY" $variable | ternary "gateway.secrets" "secrets" -}}
{{- fail (printf "settings.%s would lie open in a ConfigMap: give it as %s.%s" (join "." $place) $values $variable) -}}
{{- end -}}
{{- end -}}
{{- $s3 := dig "sources" "s3" dict $settings -}}
{{- range $name, $variable := dict "secretKey" "HALCYON_SOURCES_S3_SECRET_KEY" "sessionToken" "HALCYON_SOURCES_S3_SESSION_TOKEN" -}}
{{- if get $s3 $name -}}
{{- fail (printf "settings.sources.s3.%s would lie open in a ConfigMap: give it as secrets.%s" $name $variable) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := dig "kafka" "properties" dict $settings -}}
{{- if regexMatch "(?i)password|secret|token|pem" $name -}}
{{- fail (printf "settings.kafka.properties has %s, which would lie open in a ConfigMap: give it as secrets.HALCYON_KAFKA_PROPERTY_%s" $name $name) -}}
{{- end -}}
{{- end -}}
{{- if regexMatch "://[^/]*:[^/]*@|-password=" (dig "redis" "url" "" $settings) -}}
{{- fail "settings.redis.url has a password, which would lie open in a ConfigMap: give the URL as secrets.HALCYON_REDIS_URL" -}}
{{- end -}}
{{- end -}}

{{/* The root is read-only, so a folder that workers write to must be a volume. */}}
{{- define "halcyon.checkVolumes" -}}
{{- $folder := dig "sources" "folder" "" .Values.settings -}}
{{- if and $folder .Values.worker.sourcesFolder.enabled -}}
{{- fail "give either settings.sources.folder or worker.sourcesFolder" -}}
{{- end -}}
{{- if $folder -}}
{{- $covered := false -}}
{{- range concat .Values.extraVolumeMounts .Values.worker.extraVolumeMounts -}}
{{- if hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) (printf "%s/" $folder) -}}
{{- $covered = true -}}
{{- end -}}
{{- end -}}
{{- if not $covered -}}
{{- fail "settings.sources.folder lies on no volume of worker.extraVolumeMounts, and the root is read-only: mount one, or enable worker.sourcesFolder instead" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A gateway without keys does not start where other machines reach it. */}}
{{- define "halcyon.checkGateway" -}}
{{- if .Values.gateway.enabled -}}
{{- $keys := or .Values.existingSecret .Values.gateway.existingSecret (dig "gateway" "open" false .Values.settings) -}}
{{- $variables := concat (keys .Values.secrets) (keys .Values.gateway.secrets) -}}
{{- range concat .Values.extraEnv .Values.gateway.extraEnv -}}
{{- $variables = append $variables .name -}}
{{- end -}}
{{- range $variables -}}
{{- if hasPrefix "HALCYON_GATEWAY_KEYS_" . -}}
{{- $keys = true -}}
{{- end -}}
{{- end -}}
{{- if not $keys -}}
{{- fail "gateways need keys: give gateway.secrets.HALCYON_GATEWAY_KEYS_NAME or gateway.existingSecret, or settings.gateway.open: true where everybody may do everything" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.gateway.ingress.enabled (not .Values.gateway.ingress.hosts) -}}
{{- fail "gateway.ingress.hosts is empty: name the hosts at which gateways are reached" -}}
{{- end -}}
{{- if and .Values.gateway.ingress.enabled (not .Values.gateway.enabled) -}}
{{- fail "gateway.ingress leads nowhere without gateway.enabled" -}}
{{- end -}}
{{- end -}}

{{- define "halcyon.checkAutoscaling" -}}
{{- with .Values.gateway.autoscaling -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail "gateway.autoscaling.minReplicas is more than gateway.autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .enabled (not (dig "requests" "cpu" "" $.Values.gateway.resources)) -}}
{{- fail "gateway.autoscaling counts in percent of gateway.resources.requests.cpu, which is not set" -}}
{{- end -}}
{{- end -}}
{{- with .Values.autoscaling -}}
{{- if and .hpa.enabled .keda.enabled -}}
{{- fail "enable either autoscaling.hpa or autoscaling.keda: two that count the same workers work against each other" -}}
{{- end -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail "autoscaling.minReplicas is more than autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .hpa.enabled (not (dig "requests" "cpu" "" $.Values.worker.resources)) -}}
{{- fail "autoscaling.hpa counts in percent of worker.resources.requests.cpu, which is not set" -}}
{{- end -}}
{{- if and .keda.enabled (not (or .keda.lagPerWorker.high .keda.lagPerWorker.normal .keda.lagPerWorker.low)) -}}
{{- fail "autoscaling.keda looks at no lane: one of autoscaling.keda.lagPerWorker must be above 0" -}}
{{- end -}}
{{- end -}}
{{- end -}}
