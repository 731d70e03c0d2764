{{/* The name of the release's objects. */}}
{{- define "environment-broker.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of a service's objects. The argument has root and service. */}}
{{- define "environment-broker.name" -}}
{{ include "environment-broker.fullname" .root }}-{{ .service }}
{{- end -}}

{{/* Labels by which the release's Pods are selected. */}}
{{- define "environment-broker.releaseSelector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels by which a service's Pods are selected. The argument has root and service. */}}
{{- define "environment-broker.selector" -}}
{{ include "environment-broker.releaseSelector" .root }}
app.kubernetes.io/component: {{ .service }}
{{- end -}}

{{/* Labels of objects that belong to no service. */}}
{{- define "environment-broker.releaseLabels" -}}
{{ include "environment-broker.releaseSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of a service's objects. The argument has root and service. */}}
{{- define "environment-broker.labels" -}}
{{ include "environment-broker.releaseLabels" .root }}
app.kubernetes.io/component: {{ .service }}
{{- end -}}

{{/* The ports of a service, as YAML. */}}
{{- define "environment-broker.ports" -}}
{{- get (dict "broker" "{api: 8080, status: 8071}" "provisioner" "{api: 3000, status: 3001}" "bundler" "{api: 8443, status: 8081}") . -}}
{{- end -}}

{{/* Whether a service keeps data in a volume: true or empty. The argument has root and service. */}}
{{- define "environment-broker.hasData" -}}
{{- $values := index .root.Values .service -}}
{{- if or (eq .service "bundler") (eq (dig "database" "driver" "" $values) "sqlite") }}true{{ end -}}
{{- end -}}

{{/* The name of the PersistentVolumeClaim of a service. The argument has root and service. */}}
{{- define "environment-broker.claim" -}}
{{- default (include "environment-broker.name" .) (index .root.Values .service).storage.existingClaim -}}
{{- end -}}

{{- define "environment-broker.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}
