{{/*
Secrets of others, whose keys `existingSecrets` maps to variables and files. Pods mount the files of a Secret in a
folder with its name. All templates have the parameters root and values (of the component; may be empty).
*/}}
{{- define "halcyon.existingSecrets" -}}
{{- concat .root.Values.existingSecrets (.values.existingSecrets | default list) | toJson -}}
{{- end -}}

{{- define "halcyon.secretVariables" -}}
{{- range include "halcyon.existingSecrets" . | fromJsonArray }}
{{- $secret := .name }}
{{- range $variable, $key := .variables }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ $key }}
{{- end }}
{{- range $variable, $key := .files }}
- name: {{ $variable }}
  value: /etc/halcyon-secrets/{{ $secret }}/{{ $key }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "halcyon.secretVolumes" -}}
{{- range $index, $secret := include "halcyon.existingSecrets" . | fromJsonArray }}
{{- with $secret.files }}
- name: secret-{{ $index }}
  secret:
    secretName: {{ $secret.name }}
    items:
      {{- range values . | uniq | sortAlpha }}
      - key: {{ . }}
        path: {{ . }}
      {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "halcyon.secretMounts" -}}
{{- range $index, $secret := include "halcyon.existingSecrets" . | fromJsonArray }}
{{- if $secret.files }}
- name: secret-{{ $index }}
  mountPath: /etc/halcyon-secrets/{{ $secret.name }}
  readOnly: true
{{- end }}
{{- end }}
{{- end -}}

{{/* The names of the variables in existingSecrets, as a JSON array. */}}
{{- define "halcyon.mappedVariables" -}}
{{- $names := list -}}
{{- range include "halcyon.existingSecrets" . | fromJsonArray -}}
{{- $names = concat $names (keys (.variables | default dict)) (keys (.files | default dict)) -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The names of the variables in existingSecrets and extraEnv, whose values are unknown here, as a JSON array. */}}
{{- define "halcyon.variableNames" -}}
{{- $names := include "halcyon.mappedVariables" . | fromJsonArray -}}
{{- range concat .root.Values.extraEnv (.values.extraEnv | default list) -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}
