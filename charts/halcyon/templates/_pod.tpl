{{/*
The common part of the pods of workers, gateways and the topics job. Parameters: root, component (its name), kind (of
its workload), values (of the component; empty or partial for the job), settings (the name of the ConfigMap), volumes
(additional ones, as YAML) and serviceAccount.
*/}}
{{- define "halcyon.pod" -}}
{{- $root := .root -}}
serviceAccountName: {{ .serviceAccount }}
automountServiceAccountToken: false
{{- /* Kubernetes describes a Service named halcyon-… in HALCYON_… variables, and Halcyon rejects unknown ones. */}}
enableServiceLinks: false
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
  - {{ toYaml . | indent 4 | trim }}
    {{- if not .labelSelector }}
    labelSelector:
      matchLabels:
        {{- include "halcyon.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
    {{- if ne $.kind "StatefulSet" }}
    matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
volumes:
  - name: settings
    configMap:
      name: {{ .settings }}
{{- with .volumes }}
{{ . | indent 2 }}
{{- end }}
{{- with concat $root.Values.extraVolumes (.values.extraVolumes | default list) }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
The common part of the containers. Parameters: root, values (as above), resources, secrets (names of Secrets with
variables), env and mounts (additional ones, as YAML).
*/}}
{{- define "halcyon.container" -}}
{{- $root := .root -}}
{{- with $root.Values.image -}}
image: {{ empty .digest | ternary (printf "%s:%s" .repository (.tag | default $root.Chart.AppVersion)) (printf "%s@%s" .repository .digest) | quote }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
env:
  - name: HALCYON_CONFIG
    value: /etc/halcyon/halcyon.yaml
{{- with .env }}
{{ . | indent 2 }}
{{- end }}
{{- with concat $root.Values.extraEnv (.values.extraEnv | default list) }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with compact .secrets }}
envFrom:
{{- range . }}
  - secretRef:
      name: {{ . }}
{{- end }}
{{- end }}
volumeMounts:
  - name: settings
    mountPath: /etc/halcyon
    readOnly: true
{{- with .mounts }}
{{ . | indent 2 }}
{{- end }}
{{- with concat $root.Values.extraVolumeMounts (.values.extraVolumeMounts | default list) }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.containerSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
The labels of a pod. They exclude the version of the chart, so that a new chart alone does not replace pods.
Parameters: root, component and values.
*/}}
{{- define "halcyon.podLabels" -}}
{{- $own := dict "app.kubernetes.io/component" .component "app.kubernetes.io/part-of" "halcyon" "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- merge (fromYaml (include "halcyon.selector" .root)) $own (.values.podLabels | default dict) .root.Values.podLabels | toYaml -}}
{{- end -}}

{{/*
The labels and annotations of a pod. Settings are read at startup, so the checksums replace pods when settings change.
Parameters: root, component and values.
*/}}
{{- define "halcyon.podMetadata" -}}
{{- $root := .root -}}
{{- $own := eq .component "gateway" | ternary $root.Values.gateway.secrets dict -}}
labels:
  {{- include "halcyon.podLabels" . | nindent 2 }}
annotations:
  kubectl.kubernetes.io/default-container: {{ .component }}
  checksum/settings: {{ include "halcyon.settings" $root | sha256sum }}
  checksum/secrets: {{ printf "%s%s" (toJson $root.Values.secrets) (toJson $own) | sha256sum }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
