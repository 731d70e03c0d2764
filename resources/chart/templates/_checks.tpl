{{/*
Fails with a list of everything that is wrong with the values and that the schema cannot express. files/variables.json has the variables of each
service, generated from its configuration: plain or secret.
*/}}
{{- define "environment-broker.checks" -}}
{{- $root := . -}}
{{- $problems := list -}}
{{- $known := .Files.Get "files/variables.json" | fromJson -}}
{{- range $service := list "broker" "provisioner" "bundler" -}}
{{- $values := index $root.Values $service -}}
{{- if $values.enabled -}}
{{- $arguments := dict "root" $root "service" $service -}}
{{- $own := include "environment-broker.ownVariables" $arguments | fromYaml -}}
{{- $variables := index $known $service -}}
{{- $seen := dict -}}
{{- range $place := list "config" "secrets" "files" -}}
{{- range $variable, $_ := index $values $place -}}
{{- $path := printf "%s.%s.%s" $service $place $variable -}}
{{- if or (hasKey $own $variable) (eq $variable "APP_NAMESPACE") -}}
{{- $problems = append $problems (printf "%s: the chart sets this variable; use its values instead" $path) -}}
{{- else if not (hasKey $variables $variable) -}}
{{- $problems = append $problems (printf "%s: the %s of this version has no such variable; docs/operator/configuration.md lists them. For variables of other versions, use %s.env" $path $service $service) -}}
{{- else if and (eq $place "config") (eq (index $variables $variable) "secret") -}}
{{- $problems = append $problems (printf "%s: the variable is secret, and values are readable; put it into a Secret, and name that in %s.secretName or %s.secrets" $path $service $service) -}}
{{- end -}}
{{- if hasKey $seen $variable -}}
{{- $problems = append $problems (printf "%s: the variable is also in %s.%s" $path $service (index $seen $variable)) -}}
{{- end -}}
{{- $_ := set $seen $variable $place -}}
{{- end -}}
{{- end -}}
{{- $problems = concat $problems (include "environment-broker.missing" $arguments | fromJsonArray) -}}
{{- if and (gt (int $values.replicas) 1) (include "environment-broker.hasData" $arguments) (or $values.storage.existingClaim (not $values.storage.ephemeral)) (ne $values.storage.accessMode "ReadWriteMany") -}}
{{- $problems = append $problems (printf "%s.storage.accessMode: several Pods share a volume only with ReadWriteMany; or set %s.replicas to 1, or %s.storage.ephemeral without existingClaim" $service $service $service) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.monitoring.serviceMonitor.enabled .Values.networkPolicy.enabled (empty .Values.networkPolicy.monitoring) -}}
{{- $problems = append $problems "networkPolicy.monitoring: it is empty, so Prometheus cannot read the metrics; set the peers that may, such as {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}" -}}
{{- end -}}
{{- if and (or .Values.ingress.enabled .Values.gateway.enabled) (not .Values.broker.enabled) -}}
{{- $problems = append $problems "ingress and gateway publish the broker, but broker.enabled is false" -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "the values are incomplete or wrong:\n- %s\n" (join "\n- " $problems)) -}}
{{- end -}}
{{- end -}}

{{/* The required values that are missing, as a JSON list. The argument has root and service. */}}
{{- define "environment-broker.missing" -}}
{{- $service := .service -}}
{{- $values := index .root.Values $service -}}
{{- $missing := list -}}
{{- $set := merge (dict) $values.config $values.secrets -}}
{{- if ne $service "bundler" -}}
{{- if not (or $values.secretName (hasKey $values.secrets "APP_DATABASE_SECRET_KEYS")) -}}
{{- $missing = append $missing (printf "%s.secretName: name a Secret whose keys are variables. It needs at least APP_DATABASE_SECRET_KEYS and APP_AUTH_BASIC_USERS%s" $service (ternary ", and APP_DATABASE_PASSWORD" "" (eq $values.database.driver "postgres"))) -}}
{{- end -}}
{{- if and (eq $values.database.driver "postgres") (not (hasKey $set "APP_DATABASE_HOST")) -}}
{{- $missing = append $missing (printf "%s.config.APP_DATABASE_HOST: set the host of PostgreSQL; or set %s.database.driver to sqlite and %s.replicas to 1 for evaluation" $service $service $service) -}}
{{- end -}}
{{- end -}}
{{- if eq $service "provisioner" -}}
{{- if not (hasKey $values.files "APP_GARDENER_KUBECONFIG_PATH") -}}
{{- $missing = append $missing "provisioner.files.APP_GARDENER_KUBECONFIG_PATH: name the Secret with the kubeconfig for Gardener: {secret: gardener, key: kubeconfig}" -}}
{{- end -}}
{{- if not (hasKey $set "APP_GARDENER_PROJECT") -}}
{{- $missing = append $missing "provisioner.config.APP_GARDENER_PROJECT: set the Gardener project" -}}
{{- end -}}
{{- end -}}
{{- if and (eq $service "broker") (not .root.Values.provisioner.enabled) (not (hasKey $set "APP_PROVISIONER_URL")) -}}
{{- $missing = append $missing "broker.config.APP_PROVISIONER_URL: set the address of the Provisioner, because provisioner.enabled is false" -}}
{{- end -}}
{{- if and (eq $service "bundler") (not (or (hasKey $values.files "APP_TLS_CERT_FILE") (hasKey $set "APP_TLS_SELF_SIGNED"))) -}}
{{- $missing = append $missing "bundler.files.APP_TLS_CERT_FILE and APP_TLS_KEY_FILE: name the Secret with the certificate; or set bundler.config.APP_TLS_SELF_SIGNED for evaluation" -}}
{{- end -}}
{{- toJson $missing -}}
{{- end -}}
