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
{{- toYaml $settings -}}
{{- end -}}

{{- define "halcyon.prefix" -}}
{{- dig "kafka" "prefix" "halcyon." .Values.settings -}}
{{- end -}}

{{/* The Kafka brokers, separated by commas. */}}
{{- define "halcyon.brokers" -}}
{{- $brokers := get .Values.secrets "HALCYON_KAFKA_BROKERS" | default (dig "kafka" "brokers" "" .Values.settings) -}}
{{- kindIs "slice" $brokers | ternary $brokers (list $brokers) | join "," -}}
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
