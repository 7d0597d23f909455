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
