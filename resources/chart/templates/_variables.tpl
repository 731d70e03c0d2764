{{/*
The variables that the chart sets itself, as YAML. The argument has root and service. Users cannot set them in config.
*/}}
{{- define "environment-broker.ownVariables" -}}
{{- $values := index .root.Values .service -}}
{{- $ports := include "environment-broker.ports" .service | fromYaml -}}
APP_ADDRESS: {{ printf ":%v" $ports.api | quote }}
APP_STATUS_ADDRESS: {{ printf ":%v" $ports.status | quote }}
APP_SHUTDOWN_DELAY: {{ printf "%vs" $values.shutdownDelaySeconds | quote }}
{{- if eq .service "bundler" }}
APP_STORE_DIR: /var/lib/environment-broker
{{- else }}
APP_DATABASE_DRIVER: {{ $values.database.driver }}
{{- if eq $values.database.driver "sqlite" }}
APP_DATABASE_PATH: /var/lib/environment-broker/{{ .service }}.db
{{- end }}
{{- end }}
{{- end -}}

{{/*
Defaults of the chart for variables that users can set in config, as YAML. The argument has root and service.
*/}}
{{- define "environment-broker.defaultVariables" -}}
{{- $root := .root -}}
{{- if and (eq .service "broker") $root.Values.provisioner.enabled }}
{{- $scheme := ternary "https" "http" (hasKey $root.Values.provisioner.files "APP_TLS_CERT_FILE") }}
APP_PROVISIONER_URL: {{ $scheme }}://{{ include "environment-broker.name" (dict "root" $root "service" "provisioner") }}:3000/graphql
{{- end }}
{{- end -}}

{{/*
The variables of the bundler that depend on its namespace, as entries of a container. Kubernetes replaces $(APP_NAMESPACE).
*/}}
{{- define "environment-broker.namespaceVariables" -}}
- name: APP_NAMESPACE
  valueFrom:
    fieldRef: {fieldPath: metadata.namespace}
{{- if not (hasKey .root.Values.bundler.config "APP_EXTERNAL_ADDRESS") }}
- name: APP_EXTERNAL_ADDRESS
  value: https://{{ include "environment-broker.name" . }}.$(APP_NAMESPACE).svc:8443
{{- end }}
{{- end -}}

{{/* The folder of a variable in files. */}}
{{- define "environment-broker.volume" -}}
{{- . | lower | replace "_" "-" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/*
All variables of the service's ConfigMap, as YAML. The argument has root and service. Helm parses integers as floating-point numbers, which
print as 1e+06 unless they are converted.
*/}}
{{- define "environment-broker.variables" -}}
{{- $values := index .root.Values .service -}}
{{- $all := include "environment-broker.defaultVariables" . | fromYaml -}}
{{- range $variable, $value := $values.config -}}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) -}}
{{- $value = int64 $value -}}
{{- end -}}
{{- $_ := set $all $variable (toString $value) -}}
{{- end -}}
{{- range $variable, $file := $values.files -}}
{{- $path := printf "/etc/environment-broker/%s" (include "environment-broker.volume" $variable) -}}
{{- with dig "key" "" $file -}}
{{- $path = printf "%s/%s" $path . -}}
{{- end -}}
{{- $_ := set $all $variable $path -}}
{{- end -}}
{{- range $variable, $value := include "environment-broker.ownVariables" . | fromYaml -}}
{{- $_ := set $all $variable (toString $value) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}
