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
{{- $ports = include "halcyon.ports" (dict "servers" (include "halcyon.brokers" .) "usual" 9092) | fromJsonArray -}}
{{- end -}}
{{- include "halcyon.egressTo" (dict "ports" $ports "to" .Values.networkPolicy.kafka.to) -}}
{{- end -}}

{{- define "halcyon.egressRedis" -}}
{{- $ports := .Values.networkPolicy.redis.ports -}}
{{- if not $ports -}}
{{- if .Values.existingSecret -}}
{{- fail "existingSecret may contain another redis.url; set networkPolicy.redis.ports" -}}
{{- end -}}
{{- range concat .Values.extraEnv .Values.worker.extraEnv .Values.gateway.extraEnv -}}
{{- if eq .name "HALCYON_REDIS_URL" -}}
{{- fail "extraEnv overrides redis.url; set networkPolicy.redis.ports" -}}
{{- end -}}
{{- end -}}
{{- $url := get .Values.secrets "HALCYON_REDIS_URL" | default (dig "redis" "url" "" .Values.settings) -}}
{{- $isSentinel := contains "+sentinel:" $url -}}
{{- $servers := $url | regexFind "://[^/]*" | trimPrefix "://" | splitList "@" | last -}}
{{- $ports = include "halcyon.ports" (dict "servers" $servers "usual" ($isSentinel | ternary 26379 6379)) | fromJsonArray -}}
{{- if $isSentinel -}}
{{- $ports = append $ports 6379 | uniq -}}
{{- end -}}
{{- end -}}
{{- include "halcyon.egressTo" (dict "ports" $ports "to" .Values.networkPolicy.redis.to) -}}
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
