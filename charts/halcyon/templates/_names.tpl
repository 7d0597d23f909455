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

{{/*
The metadata of an object. Parameters: root, component (none by default), name (by default the full name of the release
followed by the component), labels and annotations (additional ones). Labels of the chart take precedence over others.
*/}}
{{- define "halcyon.metadata" -}}
{{- $component := empty .component | ternary dict (dict "app.kubernetes.io/component" .component) -}}
name: {{ .name | default (list (include "halcyon.fullname" .root) .component | compact | join "-") }}
labels:
  {{- merge (fromYaml (include "halcyon.labels" .root)) $component (.labels | default dict) .root.Values.commonLabels | toYaml | nindent 2 }}
{{- with merge dict (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
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

{{/*
The reference of an image. Parameters: root, image (registry, repository, tag and digest) and tag (the default).
*/}}
{{- define "halcyon.image" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry | trimSuffix "/" -}}
{{- $repository := empty $registry | ternary .image.repository (printf "%s/%s" $registry .image.repository) -}}
{{- empty .image.digest | ternary (printf "%s:%s" $repository (.image.tag | default .tag)) (printf "%s@%s" $repository .image.digest) -}}
{{- end -}}

{{/* The pull secrets of all images, as the list of a pod. Global ones may be names. */}}
{{- define "halcyon.pullSecrets" -}}
{{- $secrets := list -}}
{{- range concat .Values.global.imagePullSecrets .Values.imagePullSecrets -}}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- with uniq $secrets -}}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}
