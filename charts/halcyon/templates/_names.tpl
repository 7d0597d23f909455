{{- define "halcyon.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "halcyon.fullname" -}}
{{- $name := include "halcyon.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "halcyon.selector" -}}
app.kubernetes.io/name: {{ include "halcyon.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "halcyon.labels" -}}
{{ include "halcyon.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: halcyon
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "halcyon.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "halcyon.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The name of the Secret of all pods. Empty if there is none. */}}
{{- define "halcyon.secret" -}}
{{- if .Values.secrets -}}
{{- include "halcyon.fullname" . -}}
{{- else -}}
{{- .Values.existingSecret -}}
{{- end -}}
{{- end -}}

{{/* The name of the Secret of gateways only. Empty if there is none. */}}
{{- define "halcyon.gatewaySecret" -}}
{{- if .Values.gateway.secrets -}}
{{- include "halcyon.fullname" . }}-gateway
{{- else -}}
{{- .Values.gateway.existingSecret -}}
{{- end -}}
{{- end -}}
