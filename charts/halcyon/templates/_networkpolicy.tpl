{{- define "halcyon.egressDNS" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
  {{- with .Values.networkPolicy.dns.to }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "halcyon.egressKafka" -}}
{{- $ports := .Values.networkPolicy.kafka.ports -}}
{{- if not $ports -}}
{{- include "halcyon.checkPorts" (dict "root" . "server" "kafka" "setting" "kafka.brokers" "variable" "HALCYON_KAFKA_BROKERS") -}}
{{- $ports = include "halcyon.ports" (dict "servers" (include "halcyon.brokers" .) "usual" 9092) | fromJsonArray -}}
{{- end -}}
{{- include "halcyon.egressTo" (dict "ports" $ports "to" .Values.networkPolicy.kafka.to) -}}
{{- end -}}

{{- define "halcyon.egressRedis" -}}
{{- $ports := .Values.networkPolicy.redis.ports -}}
{{- if not $ports -}}
{{- include "halcyon.checkPorts" (dict "root" . "server" "redis" "setting" "redis.url" "variable" "HALCYON_REDIS_URL") -}}
{{- if and (or .Values.existingSecret .Values.envFrom) (not .Values.tryout.redis.enabled) -}}
{{- fail (printf "%s may contain another redis.url; set networkPolicy.redis.ports" (empty .Values.existingSecret | ternary "envFrom" "existingSecret")) -}}
{{- end -}}
{{- $url := include "halcyon.redisURL" . -}}
{{- $isSentinel := contains "+sentinel:" $url -}}
{{- $servers := $url | regexFind "://[^/]*" | trimPrefix "://" | splitList "@" | last -}}
{{- $ports = include "halcyon.ports" (dict "servers" $servers "usual" ($isSentinel | ternary 26379 6379)) | fromJsonArray -}}
{{- if $isSentinel -}}
{{- $ports = append $ports 6379 | uniq -}}
{{- end -}}
{{- end -}}
{{- include "halcyon.egressTo" (dict "ports" $ports "to" .Values.networkPolicy.redis.to) -}}
{{- end -}}

{{/* Requires the ports of a server whose address is in a variable with an unknown value. */}}
{{- define "halcyon.checkPorts" -}}
{{- range list .root.Values.worker .root.Values.gateway -}}
{{- if has $.variable (include "halcyon.variableNames" (dict "root" $.root "values" .) | fromJsonArray) -}}
{{- fail (printf "extraEnv or existingSecrets overrides %s (%s); set networkPolicy.%s.ports" $.setting $.variable $.server) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "halcyon.egressTo" -}}
- ports:
  {{- range .ports }}
    - port: {{ . }}
  {{- end }}
  {{- with .to }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The ports of comma-separated servers, as a JSON array. */}}
{{- define "halcyon.ports" -}}
{{- $ports := list -}}
{{- range splitList "," .servers -}}
{{- $port := regexFind ":[0-9]+$" . | trimPrefix ":" -}}
{{- $ports = append $ports ($port | default $.usual | int) -}}
{{- end -}}
{{- uniq $ports | toJson -}}
{{- end -}}
