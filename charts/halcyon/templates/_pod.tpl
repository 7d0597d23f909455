{{/*
The common part of the pods of workers, gateways, the topics job and the test. Parameters: root, component (its name),
kind (of its workload), values (of the component; empty or partial for jobs), settings (the name of the ConfigMap),
volumes (additional ones, as YAML) and serviceAccount.
*/}}
{{- define "halcyon.pod" -}}
{{- $root := .root -}}
serviceAccountName: {{ .serviceAccount }}
automountServiceAccountToken: false
{{- /* Kubernetes describes a Service named halcyon-… in HALCYON_… variables, and Halcyon rejects unknown ones. */}}
enableServiceLinks: false
{{- with include "halcyon.pullSecrets" $root }}
{{ . }}
{{- end }}
{{- with $root.Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.hostAliases }}
hostAliases: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.runtimeClassName }}
runtimeClassName: {{ . }}
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
{{- with .values.initContainers }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: settings
    configMap:
      name: {{ .settings }}
{{- with include "halcyon.secretVolumes" . }}
{{- . | trim | nindent 2 }}
{{- end }}
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
image: {{ include "halcyon.image" (dict "root" $root "image" $root.Values.image "tag" $root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
env:
  - name: HALCYON_CONFIG
    value: /etc/halcyon/halcyon.yaml
{{- with .env }}
{{ . | indent 2 }}
{{- end }}
{{- with include "halcyon.secretVariables" . }}
{{- . | trim | nindent 2 }}
{{- end }}
{{- with concat $root.Values.extraEnv (.values.extraEnv | default list) }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- $sources := list }}
{{- range compact .secrets }}
{{- $sources = append $sources (dict "secretRef" (dict "name" .)) }}
{{- end }}
{{- with concat $sources $root.Values.envFrom (.values.envFrom | default list) }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: settings
    mountPath: /etc/halcyon
    readOnly: true
{{- with include "halcyon.secretMounts" . }}
{{- . | trim | nindent 2 }}
{{- end }}
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
The probes of a container. `/healthz` is read from the port for operators, on which clients cannot use up all connections.
Parameters: port (the name of the port that serves) and values (of the component).
*/}}
{{- define "halcyon.probes" -}}
startupProbe:
  httpGet:
    path: /healthz
    port: metrics
  {{- toYaml .values.startupProbe | nindent 2 }}
livenessProbe:
  httpGet:
    path: /healthz
    port: metrics
  {{- toYaml .values.livenessProbe | nindent 2 }}
readinessProbe:
  httpGet:
    path: /readyz
    port: {{ .port }}
  {{- toYaml .values.readinessProbe | nindent 2 }}
{{- end -}}

{{/*
The shortest grace period of a pod in seconds: the time to drain, 15 s to close connections, and for gateways also the
time before SIGTERM. Parameters: root and component.
*/}}
{{- define "halcyon.shortestGrace" -}}
{{- add (int .root.Values.worker.graceSeconds) (eq .component "gateway" | ternary (int .root.Values.gateway.leaveSeconds) 0) 15 -}}
{{- end -}}

{{/* The grace period of a pod in seconds. Parameters as above. */}}
{{- define "halcyon.grace" -}}
{{- (get .root.Values .component).terminationGracePeriodSeconds | default (include "halcyon.shortestGrace" .) | int -}}
{{- end -}}

{{/*
The labels of a pod. They exclude the version of the chart, so that a new chart alone does not replace pods.
Parameters: root, component and values.
*/}}
{{- define "halcyon.podLabels" -}}
{{- $own := dict "app.kubernetes.io/component" .component "app.kubernetes.io/part-of" "halcyon" "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- merge (fromYaml (include "halcyon.selector" .root)) $own (.values.podLabels | default dict) .root.Values.podLabels .root.Values.commonLabels | toYaml -}}
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
