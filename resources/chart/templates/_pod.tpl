{{/* The spec of a service's Pods. The argument has root and service. */}}
{{- define "environment-broker.pod" -}}
{{- $values := index .root.Values .service -}}
{{- $ports := include "environment-broker.ports" .service | fromYaml -}}
serviceAccountName: {{ include "environment-broker.name" . }}
automountServiceAccountToken: {{ $values.serviceAccount.automountToken }}
enableServiceLinks: false
# A Pod serves requests for the delay, and then has 25 seconds to finish (docs/operator/running.md).
terminationGracePeriodSeconds: {{ add $values.shutdownDelaySeconds 30 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $values.topologySpread }}
topologySpreadConstraints:
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "environment-broker.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
containers:
  - name: {{ .service }}
    image: {{ include "environment-broker.image" .root | quote }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [/usr/local/bin/{{ .service }}]
    # Later sources win: a Secret cannot replace what the chart sets.
    envFrom:
{{- with $values.secretName }}
      - secretRef: {name: {{ . | quote }}}
{{- end }}
      - configMapRef: {name: {{ include "environment-broker.name" . }}}
{{- if or $values.secrets $values.env (eq .service "bundler") }}
    env:
{{- if eq .service "bundler" }}
{{- include "environment-broker.namespaceVariables" . | nindent 6 }}
{{- end }}
{{- range $variable, $source := $values.secrets }}
      - name: {{ $variable }}
        valueFrom:
          secretKeyRef: {name: {{ $source.name | quote }}, key: {{ $source.key | quote }}}
{{- end }}
{{- with $values.env }}
{{- toYaml . | nindent 6 }}
{{- end }}
{{- end }}
    ports:
      - {name: api, containerPort: {{ $ports.api }}}
      - {name: status, containerPort: {{ $ports.status }}}
    startupProbe:
      httpGet: {path: /healthz, port: status}
      periodSeconds: 2
      failureThreshold: {{ div $values.startupSeconds 2 }}
      timeoutSeconds: 5
    livenessProbe:
      httpGet: {path: /healthz, port: status}
      periodSeconds: 10
      failureThreshold: 6
      timeoutSeconds: 5
    readinessProbe:
      httpGet: {path: /readyz, port: status}
      periodSeconds: 2
      failureThreshold: 2
      timeoutSeconds: 5
    resources: {{- toYaml $values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      - {name: cache, mountPath: /var/cache/environment-broker}
{{- if include "environment-broker.hasData" . }}
      - {name: data, mountPath: /var/lib/environment-broker}
{{- end }}
{{- range $variable, $_ := $values.files }}
{{- $volume := include "environment-broker.volume" $variable }}
      - {name: {{ $volume }}, mountPath: /etc/environment-broker/{{ $volume }}, readOnly: true}
{{- end }}
{{- with $values.volumeMounts }}
{{- toYaml . | nindent 6 }}
{{- end }}
volumes:
  - {name: tmp, emptyDir: {}}
  - {name: cache, emptyDir: {}}
{{- if include "environment-broker.hasData" . }}
{{- if and $values.storage.ephemeral (not $values.storage.existingClaim) }}
  - {name: data, emptyDir: {}}
{{- else }}
  - {name: data, persistentVolumeClaim: {claimName: {{ include "environment-broker.claim" . | quote }}}}
{{- end }}
{{- end }}
{{- range $variable, $file := $values.files }}
  - name: {{ include "environment-broker.volume" $variable }}
{{- if hasKey $file "secret" }}
    secret:
      secretName: {{ $file.secret | quote }}
{{- else }}
    configMap:
      name: {{ $file.configMap | quote }}
{{- end }}
      defaultMode: 0440
{{- with dig "items" dict $file }}
      items:
{{- range $key, $path := . }}
        - {key: {{ $key | quote }}, path: {{ $path | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- with $values.volumes }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
