{{- define "halcyon.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "halcyon.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "halcyon.labels" -}}
{{ include "halcyon.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "halcyon.secret" -}}
{{- if and .Values.existingSecret .Values.secrets -}}
{{- fail "give either secrets or existingSecret" -}}
{{- end -}}
{{- if .Values.secrets -}}
{{- include "halcyon.fullname" . -}}
{{- else -}}
{{- .Values.existingSecret -}}
{{- end -}}
{{- end -}}

{{/* The file that Halcyon reads. */}}
{{- define "halcyon.settings" -}}
{{- if dig "worker" "grace" "" .Values.settings -}}
{{- fail "give worker.graceSeconds instead of settings.worker.grace: the pod's own grace follows it" -}}
{{- end -}}
{{- $grace := dict "worker" (dict "grace" (printf "%ds" (int .Values.worker.graceSeconds))) -}}
{{- mustMergeOverwrite (deepCopy .Values.settings) $grace | toYaml -}}
{{- end -}}

{{/* What the pods of workers and of the topics' job have in common. */}}
{{- define "halcyon.pod" -}}
automountServiceAccountToken: false
{{- /* Kubernetes would describe a Service named halcyon-… in HALCYON_… variables, and Halcyon refuses those it does not know. */}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
volumes:
  - name: settings
    configMap:
      name: {{ include "halcyon.fullname" . }}
{{- with .Values.worker.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.worker.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "halcyon.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - name: HALCYON_CONFIG
    value: /etc/halcyon/halcyon.yaml
{{- with include "halcyon.secret" . }}
envFrom:
  - secretRef:
      name: {{ . }}
{{- end }}
volumeMounts:
  - name: settings
    mountPath: /etc/halcyon
    readOnly: true
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}
