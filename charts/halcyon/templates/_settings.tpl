{{/*
The settings file of Halcyon. It excludes worker.staticMember, which only workers receive, as a variable. Other readers
of the file have no instance name.
*/}}
{{- define "halcyon.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- $worker := omit (get $settings "worker" | default dict) "staticMember" -}}
{{- $_ := set $settings "worker" (set $worker "grace" (printf "%ds" (int .Values.worker.graceSeconds))) -}}
{{- $_ := set $settings "http" (dict "listen" (list (printf "%s:9464" .Values.listenAddress))) -}}
{{- $gateway := get $settings "gateway" | default dict -}}
{{- $_ := set $settings "gateway" (set $gateway "listen" (list (printf "%s:8080" .Values.listenAddress))) -}}
{{- if .Values.tryout.kafka.enabled -}}
{{- $_ := set $settings "kafka" (merge (dict "brokers" (list (include "halcyon.brokers" .))) (get $settings "kafka" | default dict)) -}}
{{- end -}}
{{- if .Values.tryout.redis.enabled -}}
{{- $_ := set $settings "redis" (dict "url" (include "halcyon.redisURL" .)) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{- define "halcyon.prefix" -}}
{{- dig "kafka" "prefix" "halcyon." .Values.settings -}}
{{- end -}}

{{/* The Kafka brokers, separated by commas. */}}
{{- define "halcyon.brokers" -}}
{{- if .Values.tryout.kafka.enabled -}}
{{- include "halcyon.fullname" . }}-kafka:9092
{{- else -}}
{{- $brokers := get .Values.secrets "HALCYON_KAFKA_BROKERS" | default (dig "kafka" "brokers" "" .Values.settings) -}}
{{- include "halcyon.settingText" $brokers -}}
{{- end -}}
{{- end -}}

{{/* A setting that is a list or a text, as a text separated by commas. */}}
{{- define "halcyon.settingText" -}}
{{- kindIs "slice" . | ternary . (list .) | join "," -}}
{{- end -}}

{{/* The URL of Redis. It may contain a password. */}}
{{- define "halcyon.redisURL" -}}
{{- if .Values.tryout.redis.enabled -}}
redis://{{ include "halcyon.fullname" . }}-redis:6379
{{- else -}}
{{- get .Values.secrets "HALCYON_REDIS_URL" | default (dig "redis" "url" "" .Values.settings) -}}
{{- end -}}
{{- end -}}

{{/* A property of librdkafka from `secrets` or `settings`. */}}
{{- define "halcyon.kafkaProperty" -}}
{{- $inSettings := dig "kafka" "properties" dict .root.Values.settings -}}
{{- get .root.Values.secrets (printf "HALCYON_KAFKA_PROPERTY_%s" .name) | default (get $inSettings .name) -}}
{{- end -}}

{{/* The whole seconds of a duration such as 1m30s. */}}
{{- define "halcyon.seconds" -}}
{{- $seconds := 0 -}}
{{- $units := dict "d" 86400 "h" 3600 "m" 60 "s" 1 "ms" 0 -}}
{{- range regexFindAll "[0-9]+[a-z]+" (toString .) -1 -}}
{{- $seconds = add $seconds (mul (regexFind "[0-9]+" . | int) (get $units (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}

{{/* True if workers have instance names, which are those of their pods. Empty otherwise. */}}
{{- define "halcyon.named" -}}
{{- if or (eq .Values.worker.kind "StatefulSet") (eq (toString .Values.settings.delivery) "exactly-once") -}}
true
{{- end -}}
{{- end -}}
