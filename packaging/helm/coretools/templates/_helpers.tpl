{{- /* The name of all objects: that of the release, so that two releases fit into one namespace. */ -}}
{{- define "coretools.name" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "coretools.labels" -}}
app: {{ include "coretools.name" . }}
{{- end -}}
