{{- define "halcyon.workerVariables" -}}
{{- if include "halcyon.named" . -}}
- name: HALCYON_WORKER_INSTANCE
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- if dig "worker" "staticMember" false .Values.settings }}
- name: HALCYON_WORKER_STATIC_MEMBER
  value: "true"
{{- end }}
{{ end -}}
{{- with .Values.worker.sourcesFolder -}}
{{- if .enabled -}}
- name: HALCYON_SOURCES_DISK_CACHE
  value: {{ .path }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "halcyon.workerVolumes" -}}
{{- with .Values.worker.sourcesFolder -}}
{{- if .enabled -}}
- name: sources
  emptyDir:
    sizeLimit: {{ .sizeLimit }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "halcyon.workerMounts" -}}
{{- with .Values.worker.sourcesFolder -}}
{{- if .enabled -}}
- name: sources
  mountPath: {{ .path }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The probes of workers. A stuck worker exits after health.exitAfter, which identifies the job that caused it. The liveness
probe is for workers that cannot exit. An earlier SIGTERM would look like a normal shutdown, and the job would move on to
the next worker. The probe therefore waits one minute longer, unless its failureThreshold is set.
*/}}
{{- define "halcyon.workerProbes" -}}
{{- $probe := .Values.worker.livenessProbe -}}
{{- $seconds := add 60 (include "halcyon.exitAfter" .) -}}
{{- $period := int $probe.periodSeconds -}}
{{- $threshold := div (add $seconds $period -1) $period -}}
{{- $liveness := merge (dict "failureThreshold" ($probe.failureThreshold | default $threshold | int)) $probe -}}
{{- merge (dict "livenessProbe" $liveness) (pick .Values.worker "startupProbe" "readinessProbe") | toYaml -}}
{{- end -}}

{{/* The seconds after which a stuck worker exits. */}}
{{- define "halcyon.exitAfter" -}}
{{- include "halcyon.seconds" (dig "health" "exitAfter" "1m" .Values.settings) -}}
{{- end -}}
