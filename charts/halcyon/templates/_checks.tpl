{{/* Validation that the schema cannot express. */}}
{{- define "halcyon.checks" -}}
{{- include "halcyon.checkImage" . -}}
{{- include "halcyon.checkLabels" . -}}
{{- $settings := .Values.settings -}}
{{- $worker := get $settings "worker" | default dict -}}
{{- if hasKey $worker "grace" -}}
{{- fail "settings.worker.grace is not supported; set worker.graceSeconds, which also sets the grace period of the pod" -}}
{{- end -}}
{{- if hasKey $worker "instance" -}}
{{- fail "settings.worker.instance is not supported, because all workers would have the same name; workers that need names use those of their pods" -}}
{{- end -}}
{{- if and (dig "staticMember" false $worker) (ne .Values.worker.kind "StatefulSet") -}}
{{- fail "settings.worker.staticMember requires worker.kind StatefulSet: pods of a Deployment never return under the same name, so their partitions would stay idle" -}}
{{- end -}}
{{- if dig "http" "listen" "" $settings -}}
{{- fail "settings.http.listen is not supported; probes and metrics are always served on port 9464 of listenAddress" -}}
{{- end -}}
{{- if dig "gateway" "listen" "" $settings -}}
{{- fail "settings.gateway.listen is not supported; gateways always listen on port 8080 of listenAddress" -}}
{{- end -}}
{{- include "halcyon.checkOpenSecrets" . -}}
{{- include "halcyon.checkVolumes" . -}}
{{- if and .Values.existingSecret .Values.secrets -}}
{{- fail "secrets and existingSecret cannot be combined; set one of them" -}}
{{- end -}}
{{- if and .Values.gateway.existingSecret .Values.gateway.secrets -}}
{{- fail "gateway.secrets and gateway.existingSecret cannot be combined; set one of them" -}}
{{- end -}}
{{- include "halcyon.checkExistingSecrets" . -}}
{{- include "halcyon.checkGateway" . -}}
{{- include "halcyon.checkRoutes" . -}}
{{- include "halcyon.checkShutdown" . -}}
{{- include "halcyon.checkTryout" . -}}
{{- include "halcyon.checkAutoscaling" . -}}
{{- if and .Values.podMonitor.enabled .Values.serviceMonitor.enabled -}}
{{- fail "podMonitor and serviceMonitor cannot be combined, because Prometheus would read all metrics twice; enable one of them" -}}
{{- end -}}
{{- if and (eq .Values.worker.kind "StatefulSet") (gt (len (include "halcyon.fullname" .)) 45) -}}
{{- fail "names of StatefulSets have at most 52 characters; set a fullnameOverride of at most 45 characters" -}}
{{- end -}}
{{- end -}}

{{/* Rejects secrets in settings, because a ConfigMap is not secret. */}}
{{- define "halcyon.checkOpenSecrets" -}}
{{- $settings := .Values.settings -}}
{{- $variables := dict
    "gateway.keys" "HALCYON_GATEWAY_KEYS_NAME"
    "gateway.urlKeys" "HALCYON_GATEWAY_URL_KEYS_ID"
    "gateway.urls.imagor.keys" "HALCYON_GATEWAY_URLS_IMAGOR_KEYS_NAME"
    "gateway.urls.imgproxy.keys" "HALCYON_GATEWAY_URLS_IMGPROXY_KEYS_NAME"
    "gateway.urls.thumbor.keys" "HALCYON_GATEWAY_URLS_THUMBOR_KEYS_NAME"
    "purge.hooks" "HALCYON_PURGE_HOOKS_NAME"
    "results.s3.secretKey" "HALCYON_RESULTS_S3_SECRET_KEY"
    "results.s3.sessionToken" "HALCYON_RESULTS_S3_SESSION_TOKEN"
    "sources.credentials" "HALCYON_SOURCES_CREDENTIALS_NAME"
    "sources.s3.secretKey" "HALCYON_SOURCES_S3_SECRET_KEY"
    "sources.s3.sessionToken" "HALCYON_SOURCES_S3_SESSION_TOKEN"
    "traces.headers" "HALCYON_TRACES_HEADERS"
    "webhooks.secret" "HALCYON_WEBHOOKS_SECRET"
    "webhooks.secrets" "HALCYON_WEBHOOKS_SECRET_NAME"
-}}
{{- range $name, $variable := $variables -}}
{{- $value := $settings -}}
{{- range splitList "." $name -}}
{{- $value = get ($value | default dict) . -}}
{{- end -}}
{{- if $value -}}
{{- $values := hasPrefix "HALCYON_GATEWAY" $variable | ternary "gateway.secrets" "secrets" -}}
{{- fail (printf "settings.%s is stored in a ConfigMap, which is not secret; set %s.%s instead" $name $values $variable) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := dig "kafka" "properties" dict $settings -}}
{{- if regexMatch "(?i)password|secret|token|pem" $name -}}
{{- fail (printf "%s in settings.kafka.properties is stored in a ConfigMap, which is not secret; set secrets.HALCYON_KAFKA_PROPERTY_%s instead" $name $name) -}}
{{- end -}}
{{- end -}}
{{- if regexMatch "://[^/]*:[^/]*@|-password=" (dig "redis" "url" "" $settings) -}}
{{- fail "settings.redis.url has a password and is stored in a ConfigMap, which is not secret; set secrets.HALCYON_REDIS_URL instead" -}}
{{- end -}}
{{- end -}}

{{/* Requires a volume for the disk cache, because the root file system is read-only. */}}
{{- define "halcyon.checkVolumes" -}}
{{- $folder := dig "sources" "diskCache" "" .Values.settings -}}
{{- if and $folder .Values.worker.sourcesFolder.enabled -}}
{{- fail "settings.sources.diskCache and worker.sourcesFolder cannot be combined; set one of them" -}}
{{- end -}}
{{- if $folder -}}
{{- $covered := false -}}
{{- range concat .Values.extraVolumeMounts .Values.worker.extraVolumeMounts -}}
{{- if hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) (printf "%s/" $folder) -}}
{{- $covered = true -}}
{{- end -}}
{{- end -}}
{{- if not $covered -}}
{{- fail "settings.sources.diskCache is not on a volume, and the root file system is read-only; mount a volume with worker.extraVolumeMounts, or enable worker.sourcesFolder instead" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Requires an image that exists. There is none with the default name. */}}
{{- define "halcyon.checkImage" -}}
{{- $isDefault := and (eq .Values.image.repository "halcyon") (not (or .Values.image.registry .Values.global.imageRegistry)) -}}
{{- if and $isDefault (ne .Values.image.pullPolicy "Never") -}}
{{- fail "there is no public image of Halcyon; build one with docker/Dockerfile, push it to your registry, and set image.registry or image.repository to it, for example --set image.registry=registry.example.org; for an image that is already on the nodes, set image.pullPolicy=Never" -}}
{{- end -}}
{{- end -}}

{{/* Rejects common labels that the chart sets itself, some of them in selectors. */}}
{{- define "halcyon.checkLabels" -}}
{{- $own := append (fromYaml (include "halcyon.labels" .) | keys) "app.kubernetes.io/component" -}}
{{- range keys .Values.commonLabels -}}
{{- if has . $own -}}
{{- fail (printf "commonLabels.%s is not supported, because the chart sets this label" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Rejects Secrets that are listed twice, and variables with two sources in existingSecrets, secrets or extraEnv. */}}
{{- define "halcyon.checkExistingSecrets" -}}
{{- range $component := list "worker" "gateway" -}}
{{- $parameters := dict "root" $ "values" (get $.Values $component) -}}
{{- $names := list -}}
{{- range include "halcyon.existingSecrets" $parameters | fromJsonArray -}}
{{- if has .name $names -}}
{{- fail (printf "existingSecrets has two entries for the Secret %s; merge their variables and files" .name) -}}
{{- end -}}
{{- if not (or .variables .files) -}}
{{- fail (printf "the entry of existingSecrets for the Secret %s has no variables and no files" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- $others := include "halcyon.variableNames" $parameters | fromJsonArray | concat (keys $.Values.secrets) -}}
{{- range include "halcyon.mappedVariables" $parameters | fromJsonArray -}}
{{- if gt (sub (len $others) (without $others . | len) | int) 1 -}}
{{- fail (printf "the variable %s has two values; set it once, in secrets, existingSecrets or extraEnv" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Requires keys for gateways. Without keys, they do not start on addresses that other machines can reach. */}}
{{- define "halcyon.checkGateway" -}}
{{- if .Values.gateway.enabled -}}
{{- $keys := or .Values.existingSecret .Values.gateway.existingSecret .Values.envFrom .Values.gateway.envFrom (dig "gateway" "allowAnonymous" false .Values.settings) -}}
{{- $variables := include "halcyon.variableNames" (dict "root" . "values" .Values.gateway) | fromJsonArray -}}
{{- range concat (keys .Values.secrets) (keys .Values.gateway.secrets) $variables -}}
{{- if regexMatch "^HALCYON_GATEWAY_(URL_|URLS_[A-Z]+_)?KEYS_" . -}}
{{- $keys = true -}}
{{- end -}}
{{- end -}}
{{- if not $keys -}}
{{- fail "gateways need keys; set gateway.secrets.HALCYON_GATEWAY_KEYS_NAME (API keys) or HALCYON_GATEWAY_URL_KEYS_ID (signed URLs), gateway.existingSecret or gateway.existingSecrets, or settings.gateway.allowAnonymous: true to give every client full access" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "halcyon.checkRoutes" -}}
{{- with .Values.gateway -}}
{{- if and .ingress.enabled (not .ingress.hosts) -}}
{{- fail "gateway.ingress.hosts is empty; set the host names of the gateways" -}}
{{- end -}}
{{- if and .httpRoute.enabled (not .httpRoute.parentRefs) -}}
{{- fail "gateway.httpRoute.parentRefs is empty; set the Gateways that the route belongs to, each {name, namespace}" -}}
{{- end -}}
{{- range $kind := list "ingress" "httpRoute" -}}
{{- if and (get $.Values.gateway $kind).enabled (not $.Values.gateway.enabled) -}}
{{- fail (printf "gateway.%s.enabled requires gateway.enabled" $kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Requires enough time to stop, and patience of the liveness probe of workers. */}}
{{- define "halcyon.checkShutdown" -}}
{{- range $component, $parts := dict "worker" "worker.graceSeconds + 15" "gateway" "worker.graceSeconds + gateway.leaveSeconds + 15" -}}
{{- $parameters := dict "root" $ "component" $component -}}
{{- $shortest := include "halcyon.shortestGrace" $parameters -}}
{{- if lt (include "halcyon.grace" $parameters | int) (int $shortest) -}}
{{- fail (printf "%s.terminationGracePeriodSeconds must be at least %s (%s), otherwise jobs and requests in flight are killed; increase it or reduce worker.graceSeconds" $component $shortest $parts) -}}
{{- end -}}
{{- end -}}
{{- with .Values.worker -}}
{{- if and (dig "preStop" dict .lifecycle) (not .terminationGracePeriodSeconds) -}}
{{- fail "worker.lifecycle.preStop takes a part of the grace period of the pod; set worker.terminationGracePeriodSeconds to worker.graceSeconds + 15 plus the seconds that preStop may take" -}}
{{- end -}}
{{- $patience := mul (int .livenessProbe.periodSeconds) (int .livenessProbe.failureThreshold) -}}
{{- $exitAfter := include "halcyon.exitAfter" $ | int -}}
{{- if and .livenessProbe.failureThreshold (le $patience $exitAfter) -}}
{{- fail (printf "worker.livenessProbe would stop stuck workers after %d s, before they exit by themselves and report the job that caused it (settings.health.exitAfter, %d s); increase worker.livenessProbe.failureThreshold, or set 0 to derive it" $patience $exitAfter) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Rejects addresses of other servers beside those of `tryout`. */}}
{{- define "halcyon.checkTryout" -}}
{{- $variables := include "halcyon.variableNames" (dict "root" . "values" .Values.worker) | fromJsonArray | concat (keys .Values.secrets) -}}
{{- $servers := dict
    "kafka" (dict "setting" "kafka.brokers" "value" (include "halcyon.settingText" (dig "kafka" "brokers" "" .Values.settings)) "default" "kafka:9092" "variable" "HALCYON_KAFKA_BROKERS")
    "redis" (dict "setting" "redis.url" "value" (dig "redis" "url" "" .Values.settings) "default" "redis://redis:6379" "variable" "HALCYON_REDIS_URL")
-}}
{{- range $name, $server := $servers -}}
{{- if (get $.Values.tryout $name).enabled -}}
{{- if and $server.value (ne $server.value $server.default) -}}
{{- fail (printf "tryout.%s.enabled and settings.%s cannot be combined; remove one of them" $name $server.setting) -}}
{{- end -}}
{{- if has $server.variable $variables -}}
{{- fail (printf "tryout.%s.enabled and the variable %s cannot be combined; remove one of them" $name $server.variable) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "halcyon.checkAutoscaling" -}}
{{- with .Values.gateway.autoscaling -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail "gateway.autoscaling.minReplicas is greater than gateway.autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .enabled (not (dig "requests" "cpu" "" $.Values.gateway.resources)) -}}
{{- fail "gateway.autoscaling requires gateway.resources.requests.cpu, because its target is a percentage of this request" -}}
{{- end -}}
{{- end -}}
{{- with .Values.autoscaling -}}
{{- if and .hpa.enabled .keda.enabled -}}
{{- fail "autoscaling.hpa and autoscaling.keda cannot be combined, because two autoscalers of the same workers conflict; enable one of them" -}}
{{- end -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .hpa.enabled (not (dig "requests" "cpu" "" $.Values.worker.resources)) -}}
{{- fail "autoscaling.hpa requires worker.resources.requests.cpu, because its target is a percentage of this request" -}}
{{- end -}}
{{- if and .keda.enabled (not (or .keda.lagPerWorker.high .keda.lagPerWorker.normal .keda.lagPerWorker.low)) -}}
{{- fail "autoscaling.keda has no lane to scale by; set at least one value of autoscaling.keda.lagPerWorker above 0" -}}
{{- end -}}
{{- end -}}
{{- end -}}
